import type { FastifyInstance, FastifyReply } from 'fastify'
import type { Ledger, SqlTx } from 'onceonly'
import { readKey } from '../http/key.ts'
import { sendInvalid, sendProblem } from '../http/problem.ts'
import { problemOf } from '../http/refusal.ts'
import type { Base } from '../store.ts'
import { callerOf, requireKey } from '../workspaces/authenticate.ts'
import type { Workspaces } from '../workspaces/workspaces.ts'
import { type EscalateCommand, parseEscalate } from './command.ts'
import { columns, type Escalation, type EscalationRow, escalationOf, numberOf } from './escalation.ts'

interface Parts {
  readonly once: Ledger<SqlTx>
  readonly base: Base
  readonly workspaces: Workspaces
}

/** `POST /case-escalations`: the escalation and the record of its key commit in one transaction, or not at all. */
export function addEscalations(server: FastifyInstance, { once, base, workspaces }: Parts): void {
  const escalate = once.operation<EscalateCommand>({ name: 'case.escalate', effect: 'transaction' })

  const onRequest = requireKey(workspaces, 'escalations')

  server.post('/case-escalations', { onRequest }, async (request, reply) => {
    // 1. What never reached the operation holds no claim: first the input, then the key.
    const parsed = parseEscalate(request.body)
    if ('errors' in parsed) return sendInvalid(reply, parsed.errors)
    const read = readKey(request.headers['idempotency-key'])
    if (read.kind !== 'key') return sendBadKey(reply, read)

    // 2. Claim, insert and outcome are one transaction.
    const { command } = parsed
    const { workspaceId: tenant, caller } = callerOf(request)
    const createdAt = new Date(await base.now()).toISOString()
    const execution = await escalate.execute({ tenant, caller, key: read.key }, command, async ({ tx }) => {
      const [row] = await tx.query<EscalationRow>(
        `insert into case_escalations (tenant, case_id, target_queue, reason, created_at)
         values (?, ?, ?, ?, ?) returning ${columns}`,
        [tenant, command.caseId, command.targetQueue, command.reason, createdAt],
      )
      if (row === undefined) throw new Error('The insert answered no row')
      return escalationOf(row)
    })

    // 3. A retry gets the very same answer, and is told so.
    switch (execution.kind) {
      case 'executed':
        return sendCreated(reply, execution.value)
      case 'replayed':
      case 'joined':
        return sendCreated(reply.header('idempotent-replayed', 'true'), execution.value)
      case 'failed':
      case 'refused':
        return sendProblem(reply, problemOf(execution.error))
    }
  })

  server.get<{ Params: { id: string } }>('/case-escalations/:id', { onRequest }, async (request, reply) => {
    const rows = await base.sql.query<EscalationRow>(
      `select ${columns} from case_escalations where tenant = ? and number = ?`,
      [callerOf(request).workspaceId, numberOf(request.params.id) ?? -1],
    )
    return rows[0] === undefined ? reply.callNotFound() : escalationOf(rows[0])
  })
}

function sendCreated(reply: FastifyReply, escalation: Escalation): FastifyReply {
  return reply.code(201).header('location', `/case-escalations/${escalation.escalationId}`).send(escalation)
}

function sendBadKey(
  reply: FastifyReply,
  read: { kind: 'missing' } | { kind: 'invalid'; detail: string },
): FastifyReply {
  const detail = read.kind === 'missing' ? 'This operation needs an Idempotency-Key header.' : read.detail
  return sendProblem(reply, {
    status: 400,
    name: `idempotency-key-${read.kind}`,
    title: read.kind === 'missing' ? 'Idempotency key missing' : 'Idempotency key invalid',
    detail,
    retryable: false,
    errors: [{ field: 'Idempotency-Key', detail }],
  })
}
