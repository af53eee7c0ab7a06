import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { SqlTx } from 'onceonly'
import { type InputTypes, InvalidInput } from '../http/input.ts'
import { sendProblem } from '../http/problem.ts'
import { protectRoutes } from '../http/protect.ts'
import { readStoreTime } from '../http/store-time.ts'
import { inTransaction } from '../messages/transaction.ts'
import { routeOptions } from '../openapi/route.ts'
import type { ServerParts } from '../parts.ts'
import { callerOf } from '../workspaces/authenticate.ts'
import { QuotaExceeded } from '../workspaces/quotas.ts'
import { readSequence, type SequenceCommand, startRun, storeSequence } from './document.ts'
import { complaintsAboutSteps } from './rules.ts'
import type { Runs } from './runs.ts'
import { newestSequence, saveSequence } from './sequences.ts'
import type { GivenStep, Step } from './step.ts'

interface Parts extends Pick<ServerParts, 'once' | 'base' | 'quotas'> {
  readonly runs: Runs
  /** Hosts inside the network that an operator has named. */
  readonly webhookHosts: readonly string[]
}

/** `POST /api/sequences`: the next version of a name. Under a key a retry gets the same version. */
export function addSequences(server: FastifyInstance, { once, base, quotas, webhookHosts }: Omit<Parts, 'runs'>): void {
  const definition = {
    name: storeSequence.id,
    effect: 'transaction',
    key: 'optional',
    about: {
      documentation: '/docs#sequences.store',
      businessUniqueness: 'One sequence per workspace and name; its versions are numbered by the row of the name.',
      outbox: 'nothing is published',
      tests: 'test/proof/service/outreach-sequences.test.ts',
    },
  } as const

  async function checkSteps(request: FastifyRequest<{ Body: SequenceCommand }>): Promise<void> {
    const errors = complaintsAboutSteps(request.body.steps, webhookHosts)
    if (errors.length > 0) throw new InvalidInput(errors)
  }

  const declaration = { ...storeSequence, repeat: { kind: 'command' as const, definition } }
  const options = { preHandler: [checkSteps, readStoreTime(base)], ...routeOptions(declaration) }
  const protect = protectRoutes(server.log, once)
  server.withTypeProvider<InputTypes>().post(
    '/api/sequences',
    options,
    protect(definition, async (request, reply, context) => {
      const asking = { workspaceId: callerOf(request).workspaceId, now: request.storeTime, quotas, sql: base.sql }
      const { name, steps } = request.body
      const save = (tx: SqlTx) => saveSequence(tx, asking, { name, steps: steps.map(withTemplate) })
      try {
        const { id, version } = await (context === null ? inTransaction(base, save) : save(context.tx))
        return await reply.code(201).header('location', `/api/sequences/${id}`).send({ id, version })
      } catch (error) {
        if (error instanceof QuotaExceeded) return sendProblem(reply, error.problem)
        throw error
      }
    }),
  )
}

/** A call needs no words, but the person who makes it must see what it is. */
const CALL_TEMPLATE = 'Call {{lead.phone}}'

function withTemplate(step: GivenStep): Step {
  return step.type === 'call' ? { ...step, template: step.template ?? CALL_TEMPLATE } : step
}

/** One sequence, and its runs: one for each version and lead, unless the caller names them. */
export function addStarts(
  server: FastifyInstance,
  { base, runs }: Omit<Parts, 'once' | 'quotas' | 'webhookHosts'>,
): void {
  const typed = server.withTypeProvider<InputTypes>()

  typed.get('/api/sequences/:id', routeOptions(readSequence), async (request, reply) => {
    const sequence = await newestSequence(base, callerOf(request).workspaceId, request.params.id)
    return sequence === null ? reply.callNotFound() : sequence
  })

  typed.post('/api/sequences/:id/runs', routeOptions(startRun), async (request, reply) => {
    const { workspaceId } = callerOf(request)
    const sequence = await newestSequence(base, workspaceId, request.params.id)
    if (sequence === null) return reply.callNotFound()
    const started = await runs.start(workspaceId, sequence, request.body)
    switch (started.kind) {
      case 'started': {
        const { runId } = started
        return reply
          .code(201)
          .header('location', `/api/runs/${encodeURIComponent(runId)}`)
          .send({ runId })
      }
      case 'unknown_lead': {
        const errors = [{ field: 'leadId', detail: 'is not a known lead' }]
        const detail = `There is no lead ${request.body.leadId} in this workspace.`
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
