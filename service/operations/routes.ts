import type { FastifyInstance } from 'fastify'
import type { Ledger } from 'onceonly'
import { operationStatus } from 'onceonly/fastify'
import type { InputTypes } from '../http/input.ts'
import { reportTo } from '../logs.ts'
import type { CollectedRoute } from '../openapi/collect.ts'
import { routeOptions } from '../openapi/route.ts'
import { callerOf, rightOf, whoAsks } from '../workspaces/authenticate.ts'
import { mayUse, type Right } from '../workspaces/workspaces.ts'
import { readOperation } from './document.ts'

interface Parts {
  /** Where the operations of this server are recorded; a record is looked for in this order. */
  readonly ledgers: readonly Ledger<unknown>[]
  readonly routes: readonly CollectedRoute[]
}

/** `GET /operations/{id}`: what became of a request, for the caller who made it and still has the right to. */
export function addOperations(server: FastifyInstance, { ledgers, routes }: Parts): void {
  const places = [...new Set(ledgers)].map((ledger) => {
    const status = operationStatus({
      ledger,
      who: whoAsks,
      onError: reportTo(server.log),
      authorize: async (request, { identity }) => {
        const right = rightFor(routes, identity.operation)
        return right !== null && mayUse(callerOf(request), right)
      },
    })
    return { ledger, status }
  })
  const last = places.at(-1)

  const options = routeOptions(readOperation)
  server.withTypeProvider<InputTypes>().get('/operations/:id', options, async (request, reply) => {
    const { id } = request.params
    for (const { ledger, status } of places.slice(0, -1)) {
      if (/^[0-9a-f]{32}$/.test(id) && (await ledger.find(id)) !== null) return status(request, reply)
    }
    return last?.status(request, reply)
  })
}

/** The right that its route asks for. Null for what no API key can ask for. */
function rightFor(routes: readonly CollectedRoute[], operation: string): Right | null {
  for (const { declaration } of routes) {
    if (declaration === null || declaration === 'page' || declaration.access !== 'api key') continue
    const { repeat } = declaration
    if (repeat?.kind === 'command' && repeat.definition.name === operation) return rightOf(declaration)
  }
  return null
}
