import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { HOUR, isOnceError, type Ledger, type SqlTx, type TransactionContext } from 'onceonly'
import { type Admin, BadArguments, commandTable, createCommands, fromTexts } from 'onceonly/admin'
import { idempotent } from 'onceonly/fastify'
import { jsonAnswer } from 'onceonly/http'
import { putCase } from '../escalations/cases.ts'
import { sendInvalid, sendProblem } from '../http/problem.ts'
import { reportTo } from '../logs.ts'
import type { Base } from '../store.ts'
import { requireOperator } from '../workspaces/authenticate.ts'
import { rightNames, type Workspaces } from '../workspaces/workspaces.ts'
import { ADVANCE_MS_MOST, check, fieldOf, isRights, isTexts } from './checks.ts'
import * as document from './document.ts'

interface Parts {
  readonly once: Ledger<SqlTx>
  readonly base: Base
  readonly admin: Admin
  readonly workspaces: Workspaces
  readonly operatorToken: string
  readonly testClock: boolean
}

/** As long as a script that makes keys may be repeated by hand. */
const KEY_MS = 24 * HOUR
/** Operators share one token, so they are one caller. */
const OPERATOR = 'operator'
const JSON_TYPE = 'application/json; charset=utf-8'

/** What an operator may do from outside: workspaces, keys, rights, and, in tests, the time. All of it may be repeated. */
export function addAdmin(server: FastifyInstance, parts: Parts): void {
  server.register(async (scope) => {
    scope.addHook('onRequest', requireOperator(parts.operatorToken))
    addWorkspaces(scope, parts)
    addCases(scope, parts)
    addClock(scope, parts)
    addKeys(scope, parts)
    addUnknowns(scope, parts)
  })
}

function addWorkspaces(scope: FastifyInstance, { workspaces }: Parts): void {
  const putWorkspace = { config: { declaration: document.putWorkspace } }
  scope.put<{ Params: { id: string } }>('/api/admin/workspaces/:id', putWorkspace, async (request, reply) => {
    const name = fieldOf(request.body, 'name')
    const errors = [...check('id', request.params.id), ...check('name', name)]
    if (errors.length > 0) return sendInvalid(reply, errors)
    await workspaces.put(request.params.id, String(name))
    return { id: request.params.id, name }
  })

  scope.put<{ Params: { id: string; caller: string } }>(
    '/api/admin/workspaces/:id/callers/:caller/rights',
    { config: { declaration: document.putRights } },
    async (request, reply) => {
      const { id, caller } = request.params
      const rights = fieldOf(request.body, 'rights')
      const errors = [...check('id', id), ...check('caller', caller)]
      if (!isRights(rights)) errors.push({ field: 'rights', detail: `is not a list of ${rightNames.join(', ')}` })
      if (errors.length > 0 || !isRights(rights)) return sendInvalid(reply, errors)
      if (!(await workspaces.exists(id))) return reply.callNotFound()
      await workspaces.setRights(id, caller, rights)
      return { rights }
    },
  )
}

function addCases(scope: FastifyInstance, { base, workspaces }: Parts): void {
  const put = { config: { declaration: document.putCase } }
  scope.put<{ Params: { id: string } }>('/api/admin/cases/:id', put, async (request, reply) => {
    const workspaceId = fieldOf(request.body, 'workspaceId')
    const escalatableTo = fieldOf(request.body, 'escalatableTo')
    const errors = [...check('id', request.params.id), ...check('workspaceId', workspaceId)]
    if (!isTexts(escalatableTo)) errors.push({ field: 'escalatableTo', detail: 'is not a list of queues' })
    if (errors.length > 0) return sendInvalid(reply, errors)
    if (!(await workspaces.exists(String(workspaceId)))) return reply.callNotFound()
    const given = { id: request.params.id, escalatableTo: escalatableTo as string[] }
    await putCase(base, String(workspaceId), given)
    return { ...given, workspaceId }
  })
}

function addClock(scope: FastifyInstance, { base, testClock }: Parts): void {
  scope.put('/api/admin/test-clock', { config: { declaration: document.moveClock } }, async (request, reply) => {
    if (!testClock) {
      const detail = 'The time is moved only on a server that was started with ONCEONLY_TEST_CLOCK=1.'
      return sendProblem(reply, { name: 'not-found', detail })
    }
    const ms = fieldOf(request.body, 'advanceMs')
    if (!Number.isSafeInteger(ms) || Number(ms) < 0 || Number(ms) > ADVANCE_MS_MOST) {
      return sendInvalid(reply, [{ field: 'advanceMs', detail: `is not a whole number from 0 to ${ADVANCE_MS_MOST}` }])
    }
    await base.advance(Number(ms))
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
      return sendInvalid(reply, [{ field: 'cursor', detail: 'is not one of ours: leave it out to start again' }])
    }
  })
}

/** A retry must not make a second, unused API key, so this route accepts an `Idempotency-Key`. */
function addKeys(scope: FastifyInstance, { once, workspaces }: Parts): void {
  type Named = FastifyRequest<{ Params: { id: string } }>
  const protect = idempotent<SqlTx, FastifyRequest>(scope, {
    ledger: once,
    onError: reportTo(scope.log),
    who: (request) => ({ tenant: (request as Named).params.id, caller: OPERATOR }),
  })
  const command = protect({
    name: document.addKey.id,
    effect: 'transaction',
    key: 'optional',
    retainMs: KEY_MS,
    // The key is a secret: its record knows only which one it was.
    keep: 'pointer',
    rebuild: ({ id: keyId }) => jsonAnswer(201, JSON_TYPE, { keyId, key: null }),
    about: document.addKeyNotes,
  })

  async function validate(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    const { id } = (request as Named).params
    const errors = [...check('id', id), ...check('caller', fieldOf(request.body, 'caller'))]
    if (errors.length > 0) return sendInvalid(reply, errors)
    return (await workspaces.exists(id)) ? undefined : reply.callNotFound()
  }

  const declaration = { ...document.addKey, repeat: { kind: 'command' as const, definition: command.definition } }
  const options = { ...command, preHandler: [validate, command.preHandler], config: { declaration } }
  scope.post<{ Params: { id: string } }>('/api/admin/workspaces/:id/keys', options, async (request, reply) => {
    const work = request.onceonly as TransactionContext<SqlTx> | null | undefined
    const caller = String(fieldOf(request.body, 'caller'))
    const added = await workspaces.addKey(request.params.id, caller, { query: work?.tx.query })
    await work?.attach({ type: 'api-key', id: added.keyId })
    return reply.code(201).send(added)
  })

  const remove = { config: { declaration: document.removeKey } }
  scope.delete<{ Params: { keyId: string } }>('/api/admin/keys/:keyId', remove, async (request, reply) => {
    const { keyId } = request.params
    const errors = check('keyId', keyId)
    if (errors.length > 0) return sendInvalid(reply, errors)
    return (await workspaces.removeKey(keyId)) ? reply.code(204).send() : reply.callNotFound()
  })
}
