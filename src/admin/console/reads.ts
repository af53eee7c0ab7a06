import type { Description } from '../../events/saga/describe.ts'
import { describe, openAnswers, type ServedRoute } from '../../http/protocol/describe.ts'
import type { RecordFilter } from '../../ledger/store/port.ts'
import type { RunState } from '../../runs/entry.ts'
import type { Replay } from '../../runs/replay.ts'
import type { HistoryEvent } from '../../streams/parts/shiviz.ts'
import type { Admin, Status } from '../core/admin.ts'
import type { Paging } from '../core/dead-letters.ts'
import type { UnknownOutcome } from '../core/unknowns.ts'

/** The rooms of streams as the process that serves them knows them. */
export interface ConsoleRooms {
  /** Open sessions of this process. */
  sessions(): readonly { readonly region: string; readonly sessions: number }[]
  history(room: string, region: string): Promise<readonly HistoryEvent[] | null>
}

/** What the pages show; each question is asked only where there is something to ask about. */
export interface ReadParts {
  readonly admin: Admin
  /** The guards of this server, as operations. */
  readonly guards: readonly string[]
  readonly rooms: ConsoleRooms | null
  readonly routes: (() => readonly ServedRoute[]) | null
  sagas(): readonly Description[]
  replay: ((runId: string) => Promise<Replay>) | null
}

/** One question of a page. */
export interface Question {
  readonly query: Query
  readonly params: Query
  /** A viewer sees what happened, never what was said: bodies are for operators. */
  readonly isOperator: boolean
}

type Query = Readonly<Record<string, string | undefined>>
type Answering = (question: Question) => unknown
type Get = (path: string, answer: Answering) => void

/** What is not there, or not for who asks. */
export const ABSENT = Symbol('absent')
export const FORBIDDEN = Symbol('forbidden')

/** Counting looks at every record, so that many open pages share one count. */
const STATUS_MS = 10_000

/** Finds who answers a path, with the names in it; null where nobody does. */
export type Reads = (path: string) => { readonly answer: Answering; readonly params: Query } | null

export function createReads(parts: ReadParts): Reads {
  const { admin, routes } = parts
  const table: { readonly fits: RegExp; readonly answer: Answering }[] = []
  const get: Get = (path, answer) => {
    table.push({ fits: new RegExp(`^${path.replace(/:(\w+)/g, '(?<$1>[^/]+)')}$`), answer })
  }
  addRecords(get, parts)
  addEvents(get, parts)
  addRuns(get, parts)
  addStreams(get, parts)
  get(
    '/status',
    shared(STATUS_MS, () => admin.status()),
  )
  if (routes !== null) get('/checklist', () => checklistOf(routes()))
  get('/audit', (question) => admin.audit?.list(pageOf(question)) ?? { rows: [], cursor: null })
  get('/doctor', async () => ({ findings: await admin.doctor() }))
  return (path) => {
    for (const { fits, answer } of table) {
      const found = fits.exec(path)
      if (found !== null) return { answer, params: decoded(found.groups ?? {}) }
    }
    return null
  }
}

function decoded(groups: Query): Query {
  return Object.fromEntries(Object.entries(groups).map(([name, value]) => [name, unescaped(value ?? '')]))
}

/** What nobody could have escaped is the name of nothing. */
function unescaped(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return ''
  }
}

function checklistOf(served: readonly ServedRoute[]) {
  const routes = served.map((route) => ({
    method: route.method,
    path: route.path,
    kind: route.kind,
    operation: 'definition' in route ? (route.definition.name ?? null) : null,
    answers: describe(route),
  }))
  return { routes, open: openAnswers(served) }
}

function addRecords(get: Get, { admin, guards }: ReadParts): void {
  get('/records', (question) => admin.records(filterOf(question.query), pageOf(question)))
  get('/search', (question) => admin.search(question.query['q'] ?? '', pageOf(question)))
  get('/records/:id', async ({ params, isOperator }) => {
    const id = params['id'] ?? ''
    const found = await admin.inspect({ id })
    if (found === null) return ABSENT
    return { ...found, stored: isOperator ? await admin.answer(id) : null, storedHidden: !isOperator }
  })
  get('/stale', async () => ({ rows: await admin.stale() }))
  get('/unknowns', async (question) => {
    const { rows, cursor } = await admin.unknowns(pageOf(question))
    return { rows: question.isOperator ? rows : rows.map(withoutPlan), cursor }
  })
  get('/conflicts', (question) => admin.conflicts(pageOf(question)))
  get('/busiest', async () => ({ rows: await admin.busiest() }))
  get('/guard', async (question) => {
    const now = await admin.now()
    const page = await guarded(admin, guards, pageOf(question))
    const rows = page.rows.map((card) => ({ ...card, original: card.pointer, ageMs: now - card.claimedAt }))
    return { rows, cursor: page.cursor }
  })
}

/** Several guards are listed one after the other: a cursor says at which of them it goes on. */
async function guarded(admin: Admin, guards: readonly string[], { limit, cursor }: Paging & { limit: number }) {
  const [, at = '0', rest = ''] = /^(\d{1,4}):(.*)$/.exec(cursor ?? '') ?? []
  const operation = guards[Number(at)]
  if (operation === undefined) return { rows: [], cursor: null }
  const page = await admin.records({ operation }, { limit, cursor: rest === '' ? null : rest })
  if (page.cursor !== null) return { rows: page.rows, cursor: `${at}:${page.cursor}` }
  const next = Number(at) + 1
  return { rows: page.rows, cursor: next < guards.length ? `${next}:` : null }
}

function addEvents(get: Get, { admin, sagas }: ReadParts): void {
  const { events, sagas: instances } = admin
  if (events === null || instances === null) return
  get('/events', async () => ({ outbox: await events.outboxStatus(), consumers: await events.consumers() }))
  get('/events/outbox/dead', async (question) => {
    const { rows, cursor } = await events.outboxDead(pageOf(question))
    return { rows: question.isOperator ? rows : rows.map(withoutBody), cursor }
  })
  get('/events/inbox/:consumer/dead', async (question) => {
    const { rows, cursor } = await events.inboxDead(question.params['consumer'] ?? '', pageOf(question))
    return { rows: question.isOperator ? rows : rows.map(withoutBody), cursor }
  })
  get('/sagas', async () => ({ sagas: await instances.list(), described: sagas() }))
  get('/sagas/:saga/instances', (question) => {
    const { state } = question.query
    return instances.instances(question.params['saga'] ?? '', {
      ...pageOf(question),
      ...(state === undefined ? {} : { state }),
    })
  })
  get('/sagas/:saga/instances/:id', async ({ params, isOperator }) => {
    const found = await instances.get(params['saga'] ?? '', params['id'] ?? '')
    if (found === null) return ABSENT
    return isOperator ? found : { ...found, data: null }
  })
}

function addRuns(get: Get, { admin, replay }: ReadParts): void {
  const { runs } = admin
  if (runs === null) return
  get('/runs', async (question) => {
    const { state, definition, scope } = question.query
    const page = await runs.list({
      ...pageOf(question),
      ...(isRunState(state) ? { state } : {}),
      ...(definition === undefined ? {} : { definition }),
      ...(scope === undefined ? {} : { scope }),
    })
    return { runs: page.runs.map(({ input: _input, result: _result, ...run }) => run), cursor: page.cursor }
  })
  get('/runs/:runId', async ({ params, isOperator }) => {
    const run = await runs.get(params['runId'] ?? '')
    if (isOperator) return run
    const steps = run.steps.map((step) => ({ ...step, result: null, plan: null }))
    return { ...run, input: null, result: null, steps }
  })
  // A replay shows what was said.
  if (replay !== null) {
    get('/runs/:runId/replay', ({ params, isOperator }) => (isOperator ? replay(params['runId'] ?? '') : FORBIDDEN))
  }
}

function addStreams(get: Get, { admin, rooms }: ReadParts): void {
  const { streams } = admin
  if (streams === null || rooms === null) return
  get('/streams', async (question) => {
    const page = await streams.rooms(pageOf(question))
    return { rooms: page.rows, cursor: page.cursor, regions: rooms.sessions() }
  })
  get('/streams/:room', async ({ query, params, isOperator }) => {
    // Asked first: to read the history of a room that is not there would make it.
    const room = await streams.get(params['room'] ?? '')
    const region = query['region'] ?? room?.regions[0]?.region ?? ''
    const history = room === null ? null : await rooms.history(room.room, region)
    if (room === null || history === null) return ABSENT
    const shown = isOperator ? history : history.map((event) => ({ ...event, text: '' }))
    return { room, region, history: shown, textHidden: !isOperator }
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

function pageOf({ query }: Question): Paging & { readonly limit: number } {
  const limit = Number(query['limit'] ?? PAGE_ROWS)
  const whole = Number.isSafeInteger(limit) && limit >= 1 ? Math.min(limit, PAGE_ROWS_MOST) : PAGE_ROWS
  return { limit: whole, cursor: query['cursor'] ?? null }
}

function withoutPlan(row: UnknownOutcome): UnknownOutcome {
  return row.kind === 'step' ? { ...row, plan: null } : row
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
