import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { HOUR, isOnceError } from 'onceonly'
import { type Admin } from 'onceonly/admin'
import { BadArguments, commandTable, createCommands, fromTexts } from 'onceonly/admin/commands'
import { createProtect } from 'onceonly/fastify'
import { jsonAnswer, type RouteDefinition } from 'onceonly/http'
import { putCase } from '../escalations/cases.ts'
import type { InputTypes } from '../http/input.ts'
import { sendInvalid, sendProblem } from '../http/problem.ts'
import { reportTo } from '../logs.ts'
import { routeOptions } from '../openapi/route.ts'
import type { ServerParts } from '../parts.ts'
import * as document from './document.ts'

interface Parts extends Pick<ServerParts, 'once' | 'base' | 'workspaces'> {
  readonly admin: Admin
  readonly testClock: boolean
}

/** How long a script that makes keys may be repeated by hand. */
const KEY_MS = 24 * HOUR
/** Operators share one token, so they are one caller. */
const OPERATOR = 'operator'
const JSON_TYPE = 'application/json; charset=utf-8'

/** Commands of operators on the server itself: workspaces, keys, rights, and, in tests, the time. All may be repeated. */
export function addAdmin(server: FastifyInstance, parts: Parts): void {
  addWorkspaces(server, parts)
  addCases(server, parts)
  addClock(server, parts)
  addKeys(server, parts)
  addUnknowns(server, parts)
}

function addWorkspaces(scope: FastifyInstance, { workspaces }: Parts): void {
  const typed = scope.withTypeProvider<InputTypes>()
  typed.put('/api/admin/workspaces/:id', routeOptions(document.putWorkspace), async (request) => {
    const { id } = request.params
    const { name } = request.body
    await workspaces.put(id, name)
    return { id, name }
  })

  const rightsPath = '/api/admin/workspaces/:id/callers/:caller/rights'
  typed.put(rightsPath, routeOptions(document.putRights), async (request, reply) => {
    const { id, caller } = request.params
    const { rights } = request.body
    if (!(await workspaces.exists(id))) return reply.callNotFound()
    await workspaces.setRights(id, caller, rights)
    return { rights }
  })
}

function addCases(scope: FastifyInstance, { base, workspaces }: Parts): void {
  const typed = scope.withTypeProvider<InputTypes>()
  typed.put('/api/admin/cases/:id', routeOptions(document.putCase), async (request, reply) => {
    const { workspaceId, escalatableTo } = request.body
    if (!(await workspaces.exists(workspaceId))) return reply.callNotFound()
    await putCase(base, workspaceId, { id: request.params.id, escalatableTo })
    return { id: request.params.id, escalatableTo, workspaceId }
  })
}

function addClock(scope: FastifyInstance, { base, testClock }: Parts): void {
  const refuse = async (_request: FastifyRequest, reply: FastifyReply) => {
    if (testClock) return
    const detail = 'The clock can be moved only on a server that was started with ONCEONLY_TEST_CLOCK=1.'
    return sendProblem(reply, { name: 'not-found', detail })
  }
  const options = { ...routeOptions(document.moveClock), preValidation: refuse }
  scope.withTypeProvider<InputTypes>().put('/api/admin/test-clock', options, async (request) => {
    await base.advance(request.body.advanceMs)
    return { now: await base.now() }
  })
}

/** One list of everything unknown, the same as the console's and the command line's. */
function addUnknowns(scope: FastifyInstance, { admin }: Parts): void {
  const commands = createCommands({ admin })
  const read = { config: { declaration: document.readUnknowns } }
  type Query = { Querystring: Readonly<Record<string, string>> }
  scope.get<Query>('/api/admin/unknowns', read, async (request, reply) => {
    try {
      const given = fromTexts(commandTable.unknowns.arguments, request.query)
      return await commands.run('unknowns', given, { role: 'operator', actor: { by: OPERATOR, via: 'api' } })
    } catch (error) {
      if (error instanceof BadArguments) return sendInvalid(reply, error.faults)
      if (!isOnceError(error, 'bad_option')) throw error
      return sendInvalid(reply, [{ field: 'cursor', detail: 'is not valid: leave it out to start again' }])
    }
  })
}

/** A retry must not make a second, unused API key, so this route accepts an `Idempotency-Key`. */
function addKeys(scope: FastifyInstance, { once, workspaces }: Parts): void {
  type Named = FastifyRequest<{ Params: { id: string } }>
  const definition: RouteDefinition<FastifyRequest> & { readonly effect: 'transaction'; readonly key: 'optional' } = {
    name: document.addKey.id,
    effect: 'transaction',
    key: 'optional',
    retainMs: KEY_MS,
    // The key is a secret: its record knows only which one it was.
    keep: 'pointer',
    rebuild: ({ id: keyId }) => jsonAnswer(201, JSON_TYPE, { keyId, key: null }),
    about: document.addKeyNotes,
  }

  async function findWorkspace(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    return (await workspaces.exists((request as Named).params.id)) ? undefined : reply.callNotFound()
  }

  const protect = createProtect({
    ledger: once,
    onError: reportTo(scope.log),
    who: (request) => ({ tenant: (request as Named).params.id, caller: OPERATOR }),
  })
  const declaration = { ...document.addKey, repeat: { kind: 'command' as const, definition } }
  const typed = scope.withTypeProvider<InputTypes>()
  typed.post(
    '/api/admin/workspaces/:id/keys',
    { preHandler: findWorkspace, ...routeOptions(declaration) },
    protect(definition, async (request, reply, context) => {
      const { id } = request.params
      const added = await workspaces.addKey(id, request.body.caller, { query: context?.tx.query })
      await context?.attach({ type: 'api-key', id: added.keyId })
      return reply.code(201).send(added)
    }),
  )

  typed.delete('/api/admin/keys/:keyId', routeOptions(document.removeKey), async (request, reply) => {
    return (await workspaces.removeKey(request.params.keyId)) ? reply.code(204).send() : reply.callNotFound()
  })
}
