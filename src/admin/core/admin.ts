import { LOCAL_ROOM, localTables } from '../../events/brokers/local/tables.ts'
import { INBOX_ROOM, inboxMigrations } from '../../events/inbox/tables.ts'
import { OUTBOX_ROOM, outboxTables } from '../../events/outbox/tables.ts'
import { SAGA_ROOM, sagaMigrations } from '../../events/saga/tables.ts'
import { OnceError } from '../../ledger/core/errors.ts'
import type { Identity } from '../../ledger/core/identity.ts'
import { checkIdentity, recordIdOf } from '../../ledger/core/identity.ts'
import { HOUR, limits } from '../../ledger/core/limits.ts'
import type { LedgerRecord } from '../../ledger/core/record.ts'
import type { Ending } from '../../ledger/granted.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { OperatorOptions, rerun } from '../../ledger/operator.ts'
import type { StoreEncryption } from '../../ledger/store/encryption/status.ts'
import { LEDGER_ROOM } from '../../ledger/store/ledger-migrations.ts'
import type { BusyCaller, Page, RecordFilter, Repeats, SqlStore, StateCounts, Store } from '../../ledger/store/port.ts'
import { createWingTables } from '../../ledger/store/wing-tables.ts'
import { createRunOperator, type RunOperator } from '../../runs/operate.ts'
import { noSuchRun } from '../../runs/problems.ts'
import type { QueueOperator } from '../../runs/queue-operator.ts'
import { createQueueOperator, noSuchQueue } from '../../runs/queue-operator.ts'
import type { ScheduleOperator } from '../../runs/schedule-operator.ts'
import { createScheduleOperator, noSuchSchedule } from '../../runs/schedule-operator.ts'
import { RUN_ROOM, runMigrations } from '../../runs/tables.ts'
import { STREAM_ROOM, streamTables } from '../../streams/log/sql-tables.ts'
import {
  type Actor,
  type Audit,
  createAudit,
  KEPT_ROWS_SINCE,
  OPERATE_ROOM,
  operateMigrations,
  targetOf,
} from './audit.ts'
import { answerOf, type Card, cardOf, timelineOf, uncounted } from './card.ts'
import { createDeadLetters, type DeadLetters, type Paging } from './dead-letters.ts'
import { examine } from './doctor.ts'
import { createErasing, type Erasing } from './erase.ts'
import { answersOf, type Explanation, guardOf } from './explain.ts'
import { createFind, type Found } from './find.ts'
import type { Finding } from './finding.ts'
import { createMemoryHistory, createSqlHistory, type HistoryStorage } from './history.ts'
import { createKeptRows, type KeptRows, noKeptRows } from './kept.ts'
import { noteRestored, type Restored } from './restored.ts'
import { createRoomCheck, roomsOf } from './rooms.ts'
import { createSagas, type Sagas } from './sagas.ts'
import { createMemorySessions, createSqlSessions, type SessionStorage } from './session-storage.ts'
import { createStanding, type Standing } from './standing.ts'
import { createStreams, type Streams } from './streams.ts'
import { createUnknowns, type UnknownOutcome } from './unknowns.ts'

export interface Status {
  readonly store: string
  /** By the store's clock. */
  readonly now: number
  readonly states: StateCounts
  readonly standing: Standing
  /** Attempts of the last hour, over all callers that were counted. */
  readonly lastHour: Readonly<Record<'claims' | keyof Repeats, number>>
  readonly oldestLease: Card | null
}

/** What the commands of operators read and act on. */
export interface Admin {
  /** The name of the store. */
  readonly store: string
  status(): Promise<Status>
  /** Cheap, for gauges. */
  standing(): Promise<Standing>
  records(filter: RecordFilter, page?: Paging): Promise<Page<Card>>
  /** By identity, or by the id of the record. Also what has expired, or was released, as long as its trace is there. */
  inspect(of: Identity | { readonly id: string }): Promise<Explanation | null>
  /**
   * Records that have this id anywhere, newest first, also what has expired or was released: as their own, as their key,
   * batch or effect key, as what they point to, or in a note. Looks at a bounded share per call.
   */
  search(id: string, page?: Paging): Promise<Page<Card>>
  /** Whatever else has this id: runs and their steps, messages and dead letters, instances of sagas, rooms. */
  find(id: string): Promise<readonly Found[]>
  /** What retries are answered with, as text. */
  answer(id: string): Promise<string | null>
  stale(page?: { readonly limit?: number }): Promise<readonly Card[]>
  /** Everything whose outcome is unknown: records, messages among them, and steps of runs. */
  unknowns(page?: Paging): Promise<Page<UnknownOutcome>>
  busiest(options?: { readonly since?: number; readonly limit?: number }): Promise<readonly BusyCaller[]>
  /**
   * Records whose key was reused or refused, newest first. Looks at a bounded share per call, and no further once it has as
   * many as `limit`; of what it looked at, it gives all.
   */
  conflicts(options?: Paging & { readonly since?: number }): Promise<Page<Card>>
  /** Actions on a record. They are not audited: run the commands of `createCommands`, or wrap them in `act`. */
  release(identity: Identity, options: OperatorOptions): Promise<void>
  forget(identity: Identity, options: OperatorOptions): Promise<void>
  resolve(identity: Identity, ending: Ending | typeof rerun, options: OperatorOptions): Promise<void>
  /** Null on a store that does not speak SQL. */
  readonly events: DeadLetters | null
  readonly sagas: Sagas | null
  readonly runs: RunOperator | null
  readonly schedules: ScheduleOperator | null
  readonly queues: QueueOperator | null
  readonly streams: Streams | null
  /** The actions of operators; null where the store has no place for them. */
  readonly audit: Audit | null
  /** The session at a console. */
  readonly sessions: SessionStorage
  /** How long servers on this store keep what stands in tables of their own. */
  readonly kept: KeptRows
  /** What servers counted in each minute of the last day. */
  readonly history: HistoryStorage
  /** Does it and writes it down, where there is a place to write. */
  act<T>(actor: Actor, what: string, target: Readonly<Record<string, unknown>>, work: () => Promise<T>): Promise<T>
  sweep(): Promise<number>
  /** Of a store with keys; null without them. */
  readonly encryption: StoreEncryption | null
  /** Removes what records say about a tenant or a person; their keys stay taken. Not audited by itself. */
  readonly erasing: Erasing
  /** The version of every room's tables, after they were brought up to date. */
  migrate(): Promise<ReadonlyMap<string, number>>
  /** The same for the rooms that are there: a store with keys knows then which of their columns are encrypted. */
  declare(): Promise<void>
  /** The SQL that `migrate` would still run; nothing is changed. */
  migrations(): Promise<readonly string[]>
  doctor(): Promise<readonly Finding[]>
  /**
   * A backup of that time was restored: raises the fences, and refuses keys of the time that is gone.
   * @throws OnceError `bad_option` for a time that is yet to come
   */
  restored(at: number): Promise<Restored>
  now(): Promise<number>
}

export interface AdminOptions {
  /** The store that is looked at and acted on. */
  readonly store: Store
  /** Its cache forgets what is acted on; for a process that only operates, one without background work. */
  readonly ledger: Ledger<never> | Ledger<unknown>
  /**
   * Where actions are written down, when it is not this store: one that does not speak SQL has no place for it.
   * @default the store
   */
  readonly audit?: Audit | null
}

const call = { timeoutMs: limits.storeCallMs }
const STALE_ROWS = 100
const CONFLICT_ROWS = 100
/** Pages of records that one call looks through for conflicts. */
const CONFLICT_PAGES = 20

const migrations = {
  [OUTBOX_ROOM]: outboxTables,
  [INBOX_ROOM]: inboxMigrations,
  [SAGA_ROOM]: sagaMigrations,
  [RUN_ROOM]: runMigrations,
  [STREAM_ROOM]: streamTables,
  [OPERATE_ROOM]: operateMigrations,
}

/**
 * What operators ask of a store and do to it: records, unknown outcomes, dead letters, sagas, runs, and the audit of
 * every action.
 *
 * @example
 * ```ts
 * import { createLedger } from 'onceonly'
 * import { createAdmin } from 'onceonly/admin'
 * import { sqliteStore } from 'onceonly/sqlite'
 *
 * const store = sqliteStore('once.db')
 * const admin = createAdmin({ store, ledger: createLedger({ store, background: false }) })
 * const lost = { tenant: 'acme', caller: 'shop', operation: 'payment.capture', key: 'order-1001' }
 * if ((await admin.inspect(lost))?.record.state === 'unknown') {
 *   await admin.release(lost, { by: 'mira' })
 * }
 * ```
 */
export function createAdmin({ store, ledger: given, audit: elsewhere = null }: AdminOptions): Admin {
  const ledger = given as Ledger<unknown>
  const { sql, queries, clock } = store
  const has = sql === undefined ? async () => false : createRoomCheck(sql)
  const standing = createStanding(store)
  const tables = isSql(store) ? createWingTables(store, OPERATE_ROOM, operateMigrations) : null
  const audit = elsewhere ?? (sql === undefined || tables === null ? null : createAudit(sql, tables.prepare))
  const now = () => clock.now(call)
  const unknowns = createUnknowns(store, has)

  async function stored(id: string): Promise<LedgerRecord | null> {
    if (!/^[0-9a-f]{32}$/.test(id)) return null
    return (await store.claims.read([id], call)).records[0] ?? null
  }

  async function explained(record: LedgerRecord): Promise<Explanation> {
    const { view, now: at } = await queries.get(record.id, call)
    const counts = view ?? uncounted
    const card = cardOf(record, counts, at)
    // Reading must not create the table of the audit; where it does not exist, there were no actions.
    const asks = audit !== null && (elsewhere !== null || (await has(OPERATE_ROOM)))
    const forgotten = asks ? await audit.times('forget', targetOf(record.identity)) : 0
    const answers = await answersOf(store, record, card, { has, forgotten, isCounted: view !== null })
    return { record: card, answers, timeline: timelineOf(record, counts), guard: guardOf(record, card) }
  }

  async function cards(filter: RecordFilter, { limit = limits.pageRows, cursor = null }: Paging): Promise<Page<Card>> {
    const page = await ledger.list(filter, { limit, cursor })
    const at = await now()
    return { rows: page.rows.map((view) => cardOf(view.record, view, at)), cursor: page.cursor }
  }

  const act: Admin['act'] = (actor, what, target, work) =>
    audit === null ? work() : audit.act(actor, what, target, work)

  return {
    store: store.name,
    now,
    act,
    audit,
    sessions: sql === undefined || tables === null ? createMemorySessions() : createSqlSessions(sql, tables.prepare),
    kept:
      sql === undefined || tables === null ? noKeptRows : createKeptRows(sql, tables.prepare, () => hasKeptRows(sql)),
    history:
      sql === undefined || tables === null
        ? createMemoryHistory()
        : createSqlHistory(sql, tables.prepare, () => has(OPERATE_ROOM)),
    standing,
    async status() {
      const at = await now()
      const [states, stands, busy, [oldest]] = await Promise.all([
        ledger.count(),
        standing(),
        queries.busiest(at - HOUR, limits.pageRows, call),
        queries.lapsed(0, 1, call).then(({ rows }) => rows),
      ])
      const sum = (part: 'claims' | keyof Repeats) => busy.reduce((total, row) => total + row[part], 0)
      return {
        store: store.name,
        now: at,
        states,
        standing: stands,
        lastHour: {
          claims: sum('claims'),
          replays: sum('replays'),
          conflicts: sum('conflicts'),
          inProgress: sum('inProgress'),
        },
        oldestLease: oldest === undefined ? null : cardOf(oldest, uncounted, at),
      }
    },
    records: (filter, page = {}) => cards(filter, page),
    async inspect(of) {
      if (!('id' in of)) checkIdentity(of)
      const record = await stored('id' in of ? of.id : recordIdOf(of))
      return record === null ? null : await explained(record)
    },
    async search(id, page = {}) {
      const direct = page.cursor === undefined || page.cursor === null ? await stored(id) : null
      if (direct !== null) return { rows: [cardOf(direct, uncounted, await now())], cursor: null }
      return await cards({ mentions: id, ended: true }, page)
    },
    find: sql === undefined ? async () => [] : createFind(sql, has),
    async answer(id) {
      const record = await stored(id)
      return record === null ? null : answerOf(record)
    },
    async stale({ limit = STALE_ROWS } = {}) {
      const { rows, now: at } = await queries.lapsed(0, Math.min(limit, limits.pageRows), call)
      return rows.map((record) => cardOf(record, uncounted, at))
    },
    unknowns: (page = {}) => unknowns.page(page),
    busiest: (options = {}) => ledger.busiest(options),
    async conflicts({ since, limit = CONFLICT_ROWS, cursor: from = null } = {}) {
      const rows: Card[] = []
      let cursor = from
      for (let page = 0; page < CONFLICT_PAGES && rows.length < limit; page++) {
        const next: Page<Card> = await cards(since === undefined ? {} : { since }, { cursor })
        rows.push(...next.rows.filter(({ conflicts, inProgress }) => conflicts + inProgress > 0))
        cursor = next.cursor
        if (cursor === null) break
      }
      return { rows, cursor }
    },
    release: (identity, options) => ledger.release(identity, options),
    forget: (identity, options) => ledger.forget(identity, options),
    resolve: (identity, ending, options) => ledger.resolve(identity, ending, options),
    events: isSql(store) ? createDeadLetters(store, has) : null,
    sagas: sql === undefined ? null : createSagas(sql, has),
    runs: isSql(store) ? runsOf(store, now, has) : null,
    schedules: isSql(store) ? schedulesOf(store, has) : null,
    queues: isSql(store) ? queuesOf(store, has) : null,
    streams: sql === undefined ? null : createStreams(sql, has),
    encryption: store.encryption ?? null,
    erasing: createErasing(ledger, async () => (sql === undefined ? [] : await programRooms(sql))),
    async sweep() {
      return await ledger.upkeep.sweep()
    },
    async migrations() {
      if (sql === undefined) throw noTables(store)
      return await sql.pendingSql(migrations)
    },
    async declare() {
      if (sql === undefined) return
      const there = await roomsOf(sql)
      for (const [room, steps] of Object.entries({ ...migrations, [LOCAL_ROOM]: localTables })) {
        if (there.has(room)) await sql.migrate(room, steps)
      }
    },
    async migrate() {
      if (sql === undefined) throw noTables(store)
      await now()
      for (const [room, steps] of Object.entries(migrations)) await sql.migrate(room, steps)
      return await roomsOf(sql)
    },
    doctor: () => examine(store),
    restored: (at) => noteRestored(store, at),
  }
}

/** The tables of an earlier version have no place for them. */
async function hasKeptRows(sql: SqlStore['sql']): Promise<boolean> {
  const rooms = await roomsOf(sql).catch(() => null)
  return (rooms?.get(OPERATE_ROOM) ?? 0) >= KEPT_ROWS_SINCE
}

/** Rooms that no wing knows. */
async function programRooms(sql: SqlStore['sql']): Promise<readonly string[]> {
  const own = [LEDGER_ROOM, LOCAL_ROOM, ...Object.keys(migrations)]
  return [...(await roomsOf(sql)).keys()].filter((room) => !own.includes(room))
}

function noTables({ name }: Store): OnceError {
  return new OnceError('bad_option', `The ${name} store has no tables to migrate.`)
}

function isSql(store: Store): store is SqlStore {
  return store.sql !== undefined && store.transactions !== undefined
}

function schedulesOf(store: SqlStore, has: (room: string) => Promise<boolean>): ScheduleOperator {
  const schedules = createScheduleOperator(store.sql, { wake: () => {} })
  const known = async (name: string) => {
    if (!(await has(RUN_ROOM))) throw noSuchSchedule(name)
  }
  return {
    list: async () => ((await has(RUN_ROOM)) ? await schedules.list() : []),
    pause: (name) => known(name).then(() => schedules.pause(name)),
    resume: (name) => known(name).then(() => schedules.resume(name)),
    trigger: (name, options) => known(name).then(() => schedules.trigger(name, options)),
  }
}

function queuesOf(store: SqlStore, has: (room: string) => Promise<boolean>): QueueOperator {
  const queues = createQueueOperator(store.sql, { wake: () => {} })
  const known = async (name: string) => {
    if (!(await has(RUN_ROOM))) throw noSuchQueue(name)
  }
  return {
    list: async () => ((await has(RUN_ROOM)) ? await queues.list() : []),
    pause: (name) => known(name).then(() => queues.pause(name)),
    resume: (name) => known(name).then(() => queues.resume(name)),
  }
}

/** The tables are there as soon as an engine ran once; before that there are no runs, and asking must not make them. */
function runsOf(store: SqlStore, now: () => Promise<number>, has: (room: string) => Promise<boolean>): RunOperator {
  const runs = createRunOperator(store, now, { wake: () => {}, drop: () => {} })
  const known = async (runId: string) => {
    if (!(await has(RUN_ROOM))) throw noSuchRun(runId)
  }
  return {
    list: async (query) => ((await has(RUN_ROOM)) ? await runs.list(query) : { runs: [], cursor: null }),
    get: (runId) => known(runId).then(() => runs.get(runId)),
    export: (runId) => known(runId).then(() => runs.export(runId)),
    events: (runId, ...args) => known(runId).then(() => runs.events(runId, ...args)),
    fork: (runId, ...args) => known(runId).then(() => runs.fork(runId, ...args)),
    signal: (runId, ...args) => known(runId).then(() => runs.signal(runId, ...args)),
    cancel: (runId) => known(runId).then(() => runs.cancel(runId)),
    resume: (runId) => known(runId).then(() => runs.resume(runId)),
    retry: (runId) => known(runId).then(() => runs.retry(runId)),
    resolve: (runId, ...args) => known(runId).then(() => runs.resolve(runId, ...args)),
    erase: async (runId, ...args) => ((await has(RUN_ROOM)) ? await runs.erase(runId, ...args) : 'gone'),
  }
}
