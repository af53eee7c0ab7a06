import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Ledger, SqlTx, TransactionContext } from 'onceonly'
import { sendInvalid, sendProblem } from '../http/problem.ts'
import type { Protect } from '../http/protect.ts'
import type { Base } from '../store.ts'
import { callerOf, requireKey } from '../workspaces/authenticate.ts'
import type { Workspaces } from '../workspaces/workspaces.ts'
import { addBatchCreate } from './batch-route.ts'
import { caseById } from './cases.ts'
import { type EscalateCommand, parseEscalate } from './command.ts'
import { escalateCase, readEscalation } from './document.ts'
import { alreadyText, type Escalated, escalate, NOT_ESCALATABLE_TEXT } from './escalate.ts'
import { columns, type Escalation, type EscalationRow, escalationOf, numberOf } from './escalation.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Set once the body of an escalation has passed its checks. */
    escalateCommand: Checked | null
  }
}

interface Checked {
  readonly command: EscalateCommand
  /** When it was asked for, by the store's clock. Inside of the transaction asking would need a second connection. */
  readonly now: number
}

interface Parts {
  readonly once: Ledger<SqlTx>
  readonly protect: Protect
  readonly base: Base
  readonly workspaces: Workspaces
}

/** The escalations system: one command, many commands in one request, and what became of them. */
export function addEscalations(server: FastifyInstance, parts: Parts): void {
  addCreate(server, parts)
  addBatchCreate(server, parts)
  addRead(server, parts)
}

/** `POST /case-escalations`: the escalation and the record of its key commit in one transaction, or not at all. */
function addCreate(server: FastifyInstance, { protect, base, workspaces }: Parts): void {
  server.decorateRequest('escalateCommand', null)
  const onRequest = requireKey(workspaces, 'escalations')
  const command = protect({
    name: escalateCase.id,
    effect: 'transaction',
    respondAsync: true,
    about: {
      documentation: '/docs#case.escalate',
      businessUniqueness: 'A unique index: one open escalation per workspace, case and queue, whatever the key.',
      outbox: 'The event commits with the record, under an id that derives from the command.',
      tests: 'service/escalations.test.ts: twenty at once are one escalation, one audit row, one event',
    },
  })
  const declaration = { ...escalateCase, repeat: { kind: 'command' as const, definition: command.definition } }

  /** What never reached the operation holds no claim: the input, and the case that it names. */
  async function validate(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    const parsed = parseEscalate(request.body)
    if ('errors' in parsed) return sendInvalid(reply, parsed.errors)
    const { caseId } = parsed.command
    if ((await caseById(base.sql.query, callerOf(request).workspaceId, caseId)) === null) {
      return sendCaseNotFound(reply, caseId)
    }
    request.escalateCommand = { command: parsed.command, now: await base.now() }
    return undefined
  }

  const hooks = { ...command, onRequest, preHandler: [validate, command.preHandler], config: { declaration } }
  server.post('/case-escalations', hooks, async (request, reply) => {
    const { workspaceId: tenant, caller } = callerOf(request)
    const work = request.onceonly as TransactionContext<SqlTx> | null | undefined
    const checked = request.escalateCommand
    if (work === null || work === undefined || checked === null) throw new Error('The route is not protected')
    const escalated = await escalate(work, { tenant, caller, now: checked.now }, checked.command)
    // A case that vanished in between: the command never reached its operation.
    if (escalated.kind === 'case_not_found') request.onceonly?.notDone()
    return answer(reply, escalated, checked.command)
  })
}

function addRead(server: FastifyInstance, { base, workspaces }: Parts): void {
  const options = { onRequest: requireKey(workspaces, 'escalations'), config: { declaration: readEscalation } }
  server.get<{ Params: { id: string } }>('/case-escalations/:id', options, async (request, reply) => {
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
