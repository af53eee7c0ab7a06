import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { SqlStore } from 'onceonly'
import { postgresStore } from 'onceonly/postgres'
import type { Engine, EngineOptions, RunEvent, RunState } from 'onceonly/run'
import { createEngine } from 'onceonly/run'
import { sqliteStore } from 'onceonly/sqlite'
import { Pool } from 'pg'
import { until } from '../../../src/testing/until.ts'
import { createDatabase } from '../../../tools/servers/database.ts'
import { quietLedger } from '../quiet-ledger.ts'

/** Runs on one store: several engines on the same data, as several processes have them. */
export interface RunWorld {
  readonly events: RunEvent[]
  /** `around` may put something between the engine and its store. */
  engine(options: Omit<EngineOptions, 'ledger'>, around?: (store: SqlStore) => SqlStore): Promise<Engine>
  store(): SqlStore
  advance(ms: number): Promise<void>
}

interface Place {
  readonly name: string
  readonly skip: string | false
  open(): Promise<{ store(): SqlStore; end(): Promise<void> }>
}

const postgresUrl = process.env['ONCEONLY_TEST_POSTGRES_URL']
if (postgresUrl === undefined && process.env['CI'] === 'true') throw new Error('ONCEONLY_TEST_POSTGRES_URL is not set')

const places: readonly Place[] = [
  { name: 'sqlite', skip: false, open: openSqlite },
  { name: 'postgres', skip: postgresUrl === undefined ? 'no PostgreSQL server' : false, open: openPostgres },
]

async function openSqlite(): ReturnType<Place['open']> {
  const folder = await mkdtemp(join(tmpdir(), 'onceonly-run-'))
  const stores: SqlStore[] = []
  return {
    store() {
      const store = sqliteStore(join(folder, 'runs.db'), { testClock: true })
      stores.push(store)
      return store
    },
    async end() {
      for (const store of stores) await store.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function openPostgres(): ReturnType<Place['open']> {
  const database = await createDatabase(postgresUrl as string)
  const ends: (() => Promise<void>)[] = []
  return {
    store() {
      const pool = new Pool({ connectionString: database.url, max: 10 })
      pool.on('error', () => {})
      const store = postgresStore(pool, { testClock: true })
      ends.push(() => store.stop().then(() => pool.end()))
      return store
    },
    async end() {
      for (const end of ends) await end()
      await database.drop()
    },
  }
}

/** A store whose statements pass through here first, also those inside of transactions. */
export function watched(
  store: SqlStore,
  pass: (text: string, send: () => Promise<unknown>) => Promise<unknown>,
): SqlStore {
  const { sql } = store
  const query: SqlStore['sql']['query'] = (text, values, how) => pass(text, () => sql.query(text, values, how)) as never
  const transactions: SqlStore['transactions'] = {
    run: (work, call) =>
      store.transactions.run((session) => {
        const { tx } = session
        const inside: typeof tx.query = (text, values) => pass(text, () => tx.query(text, values)) as never
        return work({ ...session, tx: { query: inside, inSavepoint: (part) => tx.inSavepoint(part) } })
      }, call),
  }
  return { ...store, sql: { ...sql, query }, transactions }
}

/** A store in a place, and what is open on it. */
async function openWorld(place: Place): Promise<{ readonly world: RunWorld; end(): Promise<void> }> {
  const opened = await place.open()
  const engines: Engine[] = []
  const events: RunEvent[] = []
  const first = opened.store()
  return {
    world: {
      events,
      store: opened.store,
      async engine(options, around = (store) => store) {
        const engine = await createEngine({
          pollMs: 20,
          on: (event) => events.push(event),
          ...options,
          ledger: quietLedger(around(opened.store())),
        })
        engines.push(engine)
        return engine
      },
      advance: (ms) => first.clock.advance(ms, { timeoutMs: 60_000 }),
    },
    async end() {
      for (const engine of engines) await engine.stop()
      await opened.end()
    },
  }
}

/** The same test on every store that can keep runs. */
export function onEveryRunStore(title: string, body: (world: RunWorld) => Promise<void>): void {
  // At once: each has a world of its own, and waits most of its time for a disk, a server or a timer.
  describe(title, { concurrency: true }, () => {
    for (const place of places) {
      test(place.name, { skip: place.skip }, async () => {
        const { world, end } = await openWorld(place)
        try {
          await body(world)
        } finally {
          await end()
        }
      })
    }
  })
}

/** What one behaviour needs of the engine that it shares with others: its names must be its own. */
export interface Behaviour extends Pick<EngineOptions, 'queues' | 'schedules'> {
  readonly runs: EngineOptions['runs']
  play(engine: Engine, world: RunWorld): Promise<void>
}

/** Behaviours of one file, one after the other on one engine for each store, which costs little for each of them. */
export function behaviours(made: readonly (readonly [title: string, make: () => Behaviour])[]): void {
  for (const place of places) {
    describe(place.name, { skip: place.skip }, () => {
      const all = made.map(([title, make]) => ({ title, ...make() }))
      let opened: Awaited<ReturnType<typeof openWorld>> | null = null
      let engine: Engine | null = null
      before(async () => {
        opened = await openWorld(place)
        engine = await opened.world.engine({
          runs: all.flatMap(({ runs }) => runs),
          queues: all.flatMap(({ queues = [] }) => queues),
          schedules: all.flatMap(({ schedules = [] }) => schedules),
        })
      })
      after(() => opened?.end())
      for (const { title, play } of all) {
        test(title, () => play(engine as Engine, (opened as NonNullable<typeof opened>).world))
      }
    })
  }
}

/** Until the run is in a state. */
export function untilState(engine: Engine, runId: string, wanted: RunState): Promise<unknown> {
  return until(
    `${runId} is ${wanted}`,
    () => engine.get(runId).catch(() => null),
    (view) => view?.state === wanted,
  )
}
