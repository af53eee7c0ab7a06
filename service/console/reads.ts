import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { RecordFilter } from 'onceonly'
import { describe, openAnswers, type ServedRoute } from 'onceonly/http'
import type { Operate, Paging, Status } from 'onceonly/operate'
import type { Replay, RunState } from 'onceonly/run'
import type { Description } from 'onceonly/saga'
import type { Rooms } from '../chat/index.ts'
import type { Live } from './live.ts'
import type { Sessions } from './session.ts'

export interface ReadParts {
  readonly operate: Operate
  readonly sessions: Sessions
  readonly live: Live
  /** The guards of this server, as operations. */
  readonly guards: readonly string[]
  readonly rooms: Rooms
  sagas(): readonly Description[]
  routes(): readonly ServedRoute[]
  replay(runId: string): Promise<Replay>
}

type Query = Readonly<Record<string, string | undefined>>
type Asked = FastifyRequest<{ Querystring: Query; Params: Query }>

/** Counting looks at every record, so that many open pages share one count. */
const STATUS_MS = 10_000
const PAGE = { config: { declaration: 'page' as const } }
const ROOT = '/api/console'

/** Everything that the pages show. A viewer sees what happened, never what was said: bodies are for operators. */
export function addReads(server: FastifyInstance, parts: ReadParts): void {
  const { operate, sessions, live } = parts
  const isOperator = (request: FastifyRequest) => sessions.personOf(request)?.role === 'operator'
  const get = (path: string, answer: (request: Asked, reply: FastifyReply) => unknown) =>
    server.get<{ Querystring: Query; Params: Query }>(ROOT + path, PAGE, async (request, reply) =>
      answer(request, reply),
    )

  addRecords(get, parts, isOperator)
  addEvents(get, parts, isOperator)
  addRuns(get, parts, isOperator)
  addStreams(get, parts, isOperator)

  get(
    '/status',
    shared(STATUS_MS, () => operate.status()),
  )
  get('/live', (request, reply) => {
    if (live.listen(reply)) return reply
    return reply.code(503).send({ detail: `Too many pages are open (${request.ip})` })
  })
  get('/checklist', () => {
    const served = parts.routes()
    const routes = served.map((route) => ({
      method: route.method,
      path: route.path,
      kind: route.kind,
      operation: 'definition' in route ? (route.definition.name ?? null) : null,
      answers: describe(route),
    }))
    return { routes, open: openAnswers(served) }
  })
  get('/audit', (request) => operate.audit?.list(pageOf(request)) ?? { rows: [], cursor: null })
  get('/doctor', async () => ({ findings: await operate.doctor() }))
}

type Get = (path: string, answer: (request: Asked, reply: FastifyReply) => unknown) => void
type IsOperator = (request: FastifyRequest) => boolean

function addRecords(get: Get, { operate, guards }: ReadParts, isOperator: IsOperator): void {
  get('/records', (request) => operate.records(filterOf(request.query), pageOf(request)))
  get('/search', (request) => operate.search(request.query['q'] ?? '', pageOf(request)))
  get('/records/:id', async (request, reply) => {
    const id = request.params['id'] ?? ''
    const found = await operate.inspect({ id })
    if (found === null) return reply.callNotFound()
    const shown = isOperator(request)
    return { ...found, stored: shown ? await operate.answer(id) : null, storedHidden: !shown }
  })
  get('/stale', async () => ({ rows: await operate.stale() }))
  get('/unknowns', (request) => operate.unknowns(pageOf(request)))
  get('/conflicts', async () => ({ rows: await operate.conflicts() }))
  get('/busiest', async () => ({ rows: await operate.busiest() }))
  get('/guard', async (request) => {
    const now = await operate.now()
    const page = await operate.records({ operation: guards[0] ?? '' }, pageOf(request))
    const rows = page.rows.map((card) => ({ ...card, original: card.pointer, ageMs: now - card.claimedAt }))
    return { rows, cursor: page.cursor }
  })
}

function addEvents(get: Get, { operate, sagas }: ReadParts, isOperator: IsOperator): void {
  const { events, sagas: instances } = operate
  if (events === null || instances === null) return
  get('/events', async () => ({ outbox: await events.outboxStatus(), consumers: await events.consumers() }))
  get('/events/outbox/dead', async (request) => {
    const { rows, cursor } = await events.outboxDead(pageOf(request))
    return { rows: isOperator(request) ? rows : rows.map(withoutBody), cursor }
  })
  get('/events/inbox/:consumer/dead', async (request) => {
    const { rows, cursor } = await events.inboxDead(request.params['consumer'] ?? '', pageOf(request))
    return { rows: isOperator(request) ? rows : rows.map(withoutBody), cursor }
  })
  get('/sagas', async () => ({ sagas: await instances.list(), described: sagas() }))
  get('/sagas/:saga/instances', (request) => {
    const { state } = request.query
    return instances.instances(request.params['saga'] ?? '', {
      ...pageOf(request),
      ...(state === undefined ? {} : { state }),
    })
  })
  get('/sagas/:saga/instances/:id', async (request, reply) => {
    const found = await instances.get(request.params['saga'] ?? '', request.params['id'] ?? '')
    if (found === null) return reply.callNotFound()
    return isOperator(request) ? found : { ...found, data: null }
  })
}

function addRuns(get: Get, { operate, replay }: ReadParts, isOperator: IsOperator): void {
  const { runs } = operate
  if (runs === null) return
  get('/runs', async (request) => {
    const { state, definition, scope } = request.query
    const page = await runs.list({
      ...pageOf(request),
      ...(isRunState(state) ? { state } : {}),
      ...(definition === undefined ? {} : { definition }),
      ...(scope === undefined ? {} : { scope }),
    })
    return { runs: page.runs.map(({ input: _input, result: _result, ...run }) => run), cursor: page.cursor }
  })
  get('/runs/:runId', async (request) => {
    const run = await runs.get(request.params['runId'] ?? '')
    if (isOperator(request)) return run
    const steps = run.steps.map((step) => ({ ...step, result: null, plan: null }))
    return { ...run, input: null, result: null, steps }
  })
  get('/runs/:runId/replay', async (request, reply) => {
    if (!isOperator(request))
      return reply.code(403).send({ detail: 'A replay shows what was said: it is for operators.' })
    return await replay(request.params['runId'] ?? '')
  })
}

function addStreams(get: Get, { operate, rooms }: ReadParts, isOperator: IsOperator): void {
  const { streams } = operate
  if (streams === null) return
  get('/streams', async (request) => {
    const page = await streams.rooms(pageOf(request))
    return { rooms: page.rows, cursor: page.cursor, regions: rooms.sessions() }
  })
  get('/streams/:room', async (request, reply) => {
    // Asked first: to read the history of a room that is not there would make it.
    const room = await streams.get(request.params['room'] ?? '')
    const region = request.query['region'] ?? room?.regions[0]?.region ?? ''
    const history = room === null ? null : await rooms.history(room.room, region)
    if (room === null || history === null) return reply.callNotFound()
    const shown = isOperator(request) ? history : history.map((event) => ({ ...event, text: '' }))
    return { room, region, history: shown, textHidden: !isOperator(request) }
  })
}

const runStates: readonly RunState[] = ['running', 'sleeping', 'unknown', 'succeeded', 'failed', 'cancelled']

function isRunState(state: string | undefined): state is RunState {
  return runStates.some((each) => each === state)
}

const states = ['in_progress', 'succeeded', 'failed_terminal', 'failed_retryable', 'unknown'] as const

function filterOf({ tenant, caller, operation, key, state, since }: Query): RecordFilter {
  const known = states.find((each) => each === state)
  return {
    ...(tenant ? { tenant } : {}),
    ...(caller ? { caller } : {}),
    ...(operation ? { operation } : {}),
    ...(key ? { key } : {}),
    ...(known === undefined ? {} : { state: known }),
    ...(since && Number.isSafeInteger(Number(since)) ? { since: Number(since) } : {}),
  }
}

const PAGE_ROWS = 200
const PAGE_ROWS_MOST = 500

function pageOf({ query }: { readonly query: Query }): Paging & { readonly limit: number } {
  const limit = Number(query['limit'] ?? PAGE_ROWS)
  const whole = Number.isSafeInteger(limit) && limit >= 1 ? Math.min(limit, PAGE_ROWS_MOST) : PAGE_ROWS
  return { limit: whole, cursor: query['cursor'] ?? null }
}

function withoutBody<L extends { readonly message: { readonly body: string } }>(letter: L) {
  return { ...letter, message: { ...letter.message, body: null, headers: {} } }
}

function shared(forMs: number, ask: () => Promise<Status>): () => Promise<Status> {
  let last: Promise<Status> | null = null
  let askedAt = 0
  return () => {
    const now = performance.now()
    if (last === null || now - askedAt > forMs) {
      askedAt = now
      last = ask()
      last.catch(() => (last = null))
    }
    return last
  }
}
