import type { FastifyInstance, FastifyReply } from 'fastify'
import { isOnceError, type OnceError } from 'onceonly'
import type { RunState } from 'onceonly/run'
import type { InputTypes } from '../http/input.ts'
import { cursorOf } from '../http/page.ts'
import { sendProblem } from '../http/problem.ts'
import { routeOptions } from '../openapi/route.ts'
import { callerOf } from '../workspaces/authenticate.ts'
import { QuotaExceeded } from '../workspaces/quotas.ts'
import { cancelRun, placeOf, readRun, readRuns, replayRun, resolveStep, runEvents } from './document.ts'
import type { Runs } from './runs.ts'
import type { EventStreams } from './streams.ts'
import { replayOf, runOf, summaryOf } from './view.ts'
import { LIMIT_USUAL } from './words.ts'

interface Parts {
  readonly runs: Runs
}

export function addRunReads(
  server: FastifyInstance,
  { runs, streams }: Parts & { readonly streams: EventStreams },
): void {
  const typed = server.withTypeProvider<InputTypes>()

  typed.get('/api/runs', routeOptions(readRuns), async (request) => {
    const { state = null, limit = LIMIT_USUAL, cursor: given } = request.query
    const query = { state, limit, cursor: given === undefined ? null : placeOf(given) }
    const page = await runs.list(callerOf(request).workspaceId, query)
    const cursor = page.cursor === null ? null : cursorOf(page.cursor)
    return { runs: page.runs.map(({ run, runId }) => summaryOf(run, runId)), cursor }
  })

  typed.get('/api/runs/:id', routeOptions(readRun), async (request, reply) => {
    const { id } = request.params
    return answered(reply, async () => runOf(await runs.get(callerOf(request).workspaceId, id), id))
  })

  typed.get('/api/runs/:id/events', routeOptions(runEvents), async (request, reply) => {
    const { id } = request.params
    const { workspaceId } = callerOf(request)
    return answered(reply, async () => streams.send(workspaceId, request, reply, await runs.events(workspaceId, id)))
  })
}

/** What people do with a run. All of it may be repeated. */
export function addRunActions(server: FastifyInstance, { runs }: Parts): void {
  const typed = server.withTypeProvider<InputTypes>()

  typed.post('/api/runs/:id/replay', routeOptions(replayRun), async (request, reply) => {
    const { id } = request.params
    const { workspaceId } = callerOf(request)
    const dryRun = request.body?.dryRun ?? true
    return answered(reply, async () => replayOf(await runs.replay(workspaceId, id, dryRun), id))
  })

  typed.post('/api/runs/:id/cancel', routeOptions(cancelRun), async (request, reply) => {
    const { id } = request.params
    return answered(reply, async () => {
      const state = await runs.cancel(callerOf(request).workspaceId, id)
      return state === 'cancelled' ? { runId: id, state } : sendEnded(reply, id, state)
    })
  })

  const resolve = routeOptions(resolveStep)
  typed.post('/api/runs/:id/steps/:key/resolve', resolve, async (request, reply) => {
    const { id, key } = request.params
    const { workspaceId } = callerOf(request)
    return answered(reply, async () => runOf(await runs.resolve(workspaceId, id, key, request.body), id))
  })
}

/** A command without anything to say needs no body, whatever type a client announces. */
export function allowEmptyBodies(server: FastifyInstance): void {
  const json = server.getDefaultJsonParser('error', 'error')
  // In place of the one that the whole server has.
  server.removeContentTypeParser('application/json')
  server.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) => {
    if (body === '') done(null, null)
    else void json(request, String(body), done)
  })
}

/** Refusals of the engine, each as the problem that it is. */
export async function answered(
  reply: FastifyReply,
  work: () => Promise<unknown>,
  notResolvable = 'The run has no such step whose outcome is unknown.',
): Promise<unknown> {
  try {
    return await work()
  } catch (error) {
    if (isOnceError(error, 'not_found')) return reply.callNotFound()
    if (isOnceError(error, 'run_diverged')) return sendDiverged(reply, error)
    if (error instanceof QuotaExceeded) return sendProblem(reply, error.problem)
    if (!isOnceError(error, 'not_resolvable')) throw error
    return sendProblem(reply, { name: 'not-resolvable', detail: notResolvable })
  }
}

function sendDiverged(reply: FastifyReply, error: OnceError): FastifyReply {
  const { steps = [] } = (error.details ?? {}) as { steps?: readonly { id: string; status: string }[] }
  const errors = steps.map(({ id, status }) => ({ field: `steps.${id}`, detail: `would be ${status}` }))
  const detail = 'The run would not go as it went, so that nothing was performed; a dry run shows where.'
  return sendProblem(reply, { name: 'run-diverged', detail, errors })
}

export function sendEnded(reply: FastifyReply, runId: string, state: RunState): FastifyReply {
  const detail = `The run ${runId} has ended already: it ${state}.`
  return sendProblem(reply, { name: 'run-ended', detail })
}
