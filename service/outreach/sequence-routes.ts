import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Ledger, SqlTx, TransactionContext } from 'onceonly'
import { idempotent } from 'onceonly/fastify'
import { sendInvalid, sendProblem } from '../http/problem.ts'
import { reportTo } from '../logs.ts'
import { inTransaction } from '../messages/transaction.ts'
import type { Base } from '../store.ts'
import { callerOf, requireKey, whoAsks } from '../workspaces/authenticate.ts'
import { QuotaExceeded, type Quotas, unlessFull } from '../workspaces/quotas.ts'
import type { Workspaces } from '../workspaces/workspaces.ts'
import { readSequence, startRun, storeSequence } from './document.ts'
import { parseSequence, parseStart, type SequenceCommand } from './parse.ts'
import type { Runs } from './runs.ts'
import { newestSequence, saveSequence } from './sequences.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Set once the body of a sequence has passed its checks. */
    sequenceCommand: { readonly command: SequenceCommand; readonly now: number } | null
  }
}

interface Parts {
  readonly once: Ledger<SqlTx>
  readonly base: Base
  readonly workspaces: Workspaces
  readonly quotas: Quotas
  readonly runs: Runs
  /** Hosts inside the network that an operator has named. */
  readonly webhookHosts: readonly string[]
}

/** `POST /api/sequences`: the next version of a name. Under a key a retry is told of the same version. */
export function addSequences(
  server: FastifyInstance,
  { once, base, workspaces, quotas, webhookHosts }: Omit<Parts, 'runs'>,
): void {
  server.decorateRequest('sequenceCommand', null)
  const protect = idempotent<SqlTx, FastifyRequest>(server, {
    ledger: once,
    who: whoAsks,
    onError: reportTo(server.log),
  })
  const command = protect({
    name: storeSequence.id,
    effect: 'transaction',
    key: 'optional',
    about: {
      documentation: '/docs#sequences.store',
      businessUniqueness: 'One sequence per workspace and name; its versions are numbered by the row of the name.',
      outbox: 'nothing is published',
      tests: 'test/proof/service/outreach-sequences.test.ts',
    },
  })

  async function validate(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    const parsed = parseSequence(request.body, webhookHosts)
    if ('errors' in parsed) return sendInvalid(reply, parsed.errors)
    request.sequenceCommand = { command: parsed.command, now: await base.now() }
    return undefined
  }

  const declaration = { ...storeSequence, repeat: { kind: 'command' as const, definition: command.definition } }
  const onRequest = requireKey(workspaces, 'outreach')
  const hooks = { ...command, onRequest, preHandler: [validate, command.preHandler], config: { declaration } }
  server.post('/api/sequences', hooks, async (request, reply) => {
    const checked = request.sequenceCommand
    if (checked === null) throw new Error('The sequence was not checked')
    const asking = { workspaceId: callerOf(request).workspaceId, now: checked.now, quotas }
    const work = request.onceonly as TransactionContext<SqlTx> | null | undefined
    const save = (tx: SqlTx) => saveSequence(tx, asking, checked.command)
    try {
      const { id, version } = await (work ? save(work.tx) : inTransaction(base, save))
      return await reply.code(201).header('location', `/api/sequences/${id}`).send({ id, version })
    } catch (error) {
      if (error instanceof QuotaExceeded) return sendProblem(reply, error.problem)
      throw error
    }
  })
}

type Named = { Params: { readonly id: string } }

/** One sequence, and its runs: one for each version and lead, unless the caller names them. */
export function addStarts(
  server: FastifyInstance,
  { base, workspaces, runs }: Omit<Parts, 'once' | 'quotas' | 'webhookHosts'>,
): void {
  const onRequest = requireKey(workspaces, 'outreach')

  const read = { onRequest, config: { declaration: readSequence } }
  server.get<Named>('/api/sequences/:id', read, async (request, reply) => {
    const sequence = await newestSequence(base, callerOf(request).workspaceId, request.params.id)
    return sequence === null ? reply.callNotFound() : sequence
  })

  const start = { onRequest, config: { declaration: startRun } }
  server.post<Named>('/api/sequences/:id/runs', start, async (request, reply) => {
    const parsed = parseStart(request.body)
    if ('errors' in parsed) return sendInvalid(reply, parsed.errors)
    const { workspaceId } = callerOf(request)
    const sequence = await newestSequence(base, workspaceId, request.params.id)
    if (sequence === null) return reply.callNotFound()
    const started = await unlessFull(() => runs.start(workspaceId, sequence, parsed.command))
    switch (started.kind) {
      case 'refused':
        return sendProblem(reply, started.problem)
      case 'started': {
        const { runId } = started
        return reply
          .code(201)
          .header('location', `/api/runs/${encodeURIComponent(runId)}`)
          .send({ runId })
      }
      case 'unknown_lead': {
        const errors = [{ field: 'leadId', detail: 'is not a known lead' }]
        const detail = `There is no lead ${parsed.command.leadId} in this workspace.`
        return sendProblem(reply, { name: 'unknown-lead', detail, errors })
      }
      case 'conflict': {
        const { detail } = started
        const errors = [{ field: 'runId', detail: 'was given to another run' }]
        return sendProblem(reply, { name: 'run-conflict', detail, errors })
      }
    }
  })
}
