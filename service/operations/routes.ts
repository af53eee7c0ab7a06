import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Ledger, SqlTx } from 'onceonly'
import { operationStatus } from 'onceonly/fastify'
import { reportTo } from '../logs.ts'
import type { CollectedRoute } from '../openapi/collect.ts'
import { callerOf, requireKey, whoAsks } from '../workspaces/authenticate.ts'
import { type Right, rightNames, type Workspaces } from '../workspaces/workspaces.ts'
import { readOperation } from './document.ts'

interface Parts {
  readonly once: Ledger<SqlTx>
  readonly workspaces: Workspaces
  readonly routes: readonly CollectedRoute[]
}

/** `GET /operations/{id}`: what became of a request, for the caller who made it and still has the right to. */
export function addOperations(server: FastifyInstance, { once, workspaces, routes }: Parts): void {
  const status = operationStatus<SqlTx, FastifyRequest>({
    ledger: once,
    who: whoAsks,
    onError: reportTo(server.log),
    authorize: async (request, { identity }) => {
      const right = rightFor(routes, identity.operation)
      return right !== null && (await workspaces.mayUse(callerOf(request), right))
    },
  })
  const options = { onRequest: requireKey(workspaces, null), config: { declaration: readOperation } }
  server.get('/operations/:id', options, status)
}

/** The right that its route asks for: each system is a right of its own. Null for what no API key can ask for. */
function rightFor(routes: readonly CollectedRoute[], operation: string): Right | null {
  for (const { declaration } of routes) {
    if (declaration === null || declaration === 'page' || declaration.access !== 'api key') continue
    const { repeat, system } = declaration
    if (repeat?.kind !== 'command' || repeat.definition.name !== operation) continue
    return rightNames.find((right) => right === system.name) ?? null
  }
  return null
}
