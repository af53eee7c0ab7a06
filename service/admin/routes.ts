import type { FastifyInstance } from 'fastify'
import { putCase } from '../escalations/cases.ts'
import type { FieldError } from '../http/problem.ts'
import { sendInvalid, sendProblem } from '../http/problem.ts'
import type { Base } from '../store.ts'
import { requireOperator } from '../workspaces/authenticate.ts'
import type { Right, Workspaces } from '../workspaces/workspaces.ts'
import { rightNames } from '../workspaces/workspaces.ts'

interface Parts {
  readonly base: Base
  readonly workspaces: Workspaces
  readonly operatorToken: string
  readonly testClock: boolean
}

const NAME_CHARS_MOST = 100
const ADVANCE_MS_MOST = 10 * 365 * 24 * 3_600_000

/** What an operator may do from outside: workspaces, keys, rights, and, in tests, the time. All of it may be repeated. */
export function addAdmin(server: FastifyInstance, { base, workspaces, operatorToken, testClock }: Parts): void {
  server.register(async (admin) => {
    admin.addHook('onRequest', requireOperator(operatorToken))

    admin.put<{ Params: { id: string } }>('/api/admin/workspaces/:id', async (request, reply) => {
      const name = fieldOf(request.body, 'name')
      const errors = [...check('id', request.params.id), ...check('name', name)]
      if (errors.length > 0) return sendInvalid(reply, errors)
      await workspaces.put(request.params.id, String(name))
      return { id: request.params.id, name }
    })

    admin.post<{ Params: { id: string } }>('/api/admin/workspaces/:id/keys', async (request, reply) => {
      const caller = fieldOf(request.body, 'caller')
      const errors = check('caller', caller)
      if (errors.length > 0) return sendInvalid(reply, errors)
      if (!(await workspaces.exists(request.params.id))) return reply.callNotFound()
      return reply.code(201).send(await workspaces.addKey(request.params.id, String(caller)))
    })

    admin.delete<{ Params: { keyId: string } }>('/api/admin/keys/:keyId', async (request, reply) => {
      if (!(await workspaces.removeKey(request.params.keyId))) return reply.callNotFound()
      return reply.code(204).send()
    })

    admin.put<{ Params: { id: string; caller: string } }>(
      '/api/admin/workspaces/:id/callers/:caller/rights',
      async (request, reply) => {
        const rights = fieldOf(request.body, 'rights')
        if (!isRights(rights)) {
          return sendInvalid(reply, [{ field: 'rights', detail: `is not a list of ${rightNames.join(', ')}` }])
        }
        if (!(await workspaces.exists(request.params.id))) return reply.callNotFound()
        await workspaces.setRights(request.params.id, request.params.caller, rights)
        return { rights }
      },
    )

    admin.put<{ Params: { id: string } }>('/api/admin/cases/:id', async (request, reply) => {
      const workspaceId = fieldOf(request.body, 'workspaceId')
      const escalatableTo = fieldOf(request.body, 'escalatableTo')
      const errors = [...check('id', request.params.id), ...check('workspaceId', workspaceId)]
      if (!isTexts(escalatableTo)) errors.push({ field: 'escalatableTo', detail: 'is not a list of queues' })
      if (errors.length > 0) return sendInvalid(reply, errors)
      if (!(await workspaces.exists(String(workspaceId)))) return reply.callNotFound()
      const put = { id: request.params.id, escalatableTo: escalatableTo as string[] }
      await putCase(base, String(workspaceId), put)
      return { ...put, workspaceId }
    })

    admin.put('/api/admin/test-clock', async (request, reply) => {
      if (!testClock) {
        const detail = 'The time is moved only on a server that was started with ONCEONLY_TEST_CLOCK=1.'
        return sendProblem(reply, { status: 404, name: 'not-found', title: 'Not found', detail, retryable: false })
      }
      const ms = fieldOf(request.body, 'advanceMs')
      if (!Number.isSafeInteger(ms) || Number(ms) < 0 || Number(ms) > ADVANCE_MS_MOST) {
        return sendInvalid(reply, [
          { field: 'advanceMs', detail: `is not a whole number from 0 to ${ADVANCE_MS_MOST}` },
        ])
      }
      await base.advance(Number(ms))
      return { now: await base.now() }
    })
  })
}

function fieldOf(body: unknown, field: string): unknown {
  return typeof body === 'object' && body !== null ? (body as Record<string, unknown>)[field] : undefined
}

function check(field: string, value: unknown): FieldError[] {
  if (typeof value !== 'string' || value.trim() === '') return [{ field, detail: 'is not a non-blank string' }]
  return value.length > NAME_CHARS_MOST ? [{ field, detail: `is longer than ${NAME_CHARS_MOST} characters` }] : []
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((each) => check('queue', each).length === 0)
}

function isRights(value: unknown): value is Right[] {
  return Array.isArray(value) && value.every((each) => (rightNames as readonly unknown[]).includes(each))
}
