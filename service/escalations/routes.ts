import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { InputTypes } from '../http/input.ts'
import { sendProblem } from '../http/problem.ts'
import { readStoreTime } from '../http/store-time.ts'
import { routeOptions } from '../openapi/route.ts'
import type { ServerParts } from '../parts.ts'
import { callerOf } from '../workspaces/authenticate.ts'
import { addBatchCreate } from './batch-route.ts'
import { caseById } from './cases.ts'
import { type EscalateCommand, escalateCase, readEscalation } from './document.ts'
import { alreadyText, type Escalated, escalate, NOT_ESCALATABLE_TEXT } from './escalate.ts'
import { columns, type Escalation, type EscalationRow, escalationOf, numberOf } from './escalation.ts'

type Parts = Pick<ServerParts, 'once' | 'protect' | 'base'>

/** The escalations system: one command, many commands in one request, and what became of them. */
export function addEscalations(server: FastifyInstance, parts: Parts): void {
  addCreate(server, parts)
  addBatchCreate(server, parts)
  addRead(server, parts)
}

/** `POST /case-escalations`: the escalation and the record of its key commit in one transaction, or not at all. */
function addCreate(server: FastifyInstance, { protect, base }: Parts): void {
  const definition = {
    name: escalateCase.id,
    effect: 'transaction',
    respondAsync: true,
    about: {
      documentation: '/docs#case.escalate',
      businessUniqueness: 'A unique index: one open escalation per workspace, case and queue, whatever the key.',
      outbox: 'The event commits with the record, under an id that derives from the command.',
      tests: 'service/escalations.test.ts: twenty at once are one escalation, one audit row, one event',
    },
  } as const
  const declaration = { ...escalateCase, repeat: { kind: 'command' as const, definition } }

  /** A case that does not exist holds no claim. */
  async function findCase(request: FastifyRequest<{ Body: EscalateCommand }>, reply: FastifyReply): Promise<unknown> {
    const { caseId } = request.body
    const found = await caseById(base.sql.query, callerOf(request).workspaceId, caseId)
    return found === null ? sendCaseNotFound(reply, caseId) : undefined
  }

  const options = { preHandler: [findCase, readStoreTime(base)], ...routeOptions(declaration) }
  server.withTypeProvider<InputTypes>().post(
    '/case-escalations',
    options,
    protect(definition, async (request, reply, context) => {
      const { workspaceId: tenant, caller } = callerOf(request)
      const escalated = await escalate(context, { tenant, caller, now: request.storeTime, sql: base.sql }, request.body)
      // A case that vanished in between: the command never reached its operation.
      if (escalated.kind === 'case_not_found') context.notDone()
      return answer(reply, escalated, request.body)
    }),
  )
}

function addRead(server: FastifyInstance, { base }: Parts): void {
  const options = routeOptions(readEscalation)
  server.withTypeProvider<InputTypes>().get('/case-escalations/:id', options, async (request, reply) => {
    const [row] = await base.sql.query<EscalationRow>(
      `select ${columns} from case_escalations where tenant = ? and number = ?`,
      [callerOf(request).workspaceId, numberOf(request.params.id) ?? -1],
    )
    return row === undefined ? reply.callNotFound() : escalationOf(row)
  })
}

function answer(reply: FastifyReply, escalated: Escalated, { caseId }: EscalateCommand): FastifyReply {
  switch (escalated.kind) {
    case 'created':
      return located(reply, escalated.escalation).code(201).send(escalated.escalation)
    case 'already': {
      const detail = alreadyText(escalated.escalation)
      return sendProblem(located(reply, escalated.escalation), { name: 'already-escalated', detail })
    }
    case 'not_escalatable': {
      const detail = NOT_ESCALATABLE_TEXT
      return sendProblem(reply, { name: 'case-not-escalatable', detail, errorCode: 'CASE_NOT_ESCALATABLE' })
    }
    case 'case_not_found':
      return sendCaseNotFound(reply, caseId)
  }
}

function sendCaseNotFound(reply: FastifyReply, caseId: string): FastifyReply {
  const errors = [{ field: 'caseId', detail: 'names no case of this workspace' }]
  const detail = `There is no case ${caseId}.`
  return sendProblem(reply, { name: 'case-not-found', detail, errors })
}

function located(reply: FastifyReply, { escalationId }: Escalation): FastifyReply {
  return reply.header('location', `/case-escalations/${escalationId}`)
}
