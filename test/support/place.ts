import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import type { SqlStore, SqlTx, TransactionalStore } from 'onceonly'
import { postgresStore } from 'onceonly/postgres'
import { sqliteStore } from 'onceonly/sqlite'
import { Pool } from 'pg'
import { until } from '../../src/testing/until.ts'
import { createDatabase } from '../../tools/servers/database.ts'
import type { Child, Crew } from './crew.ts'
import { createCrew } from './crew.ts'
import { pauseOne } from './pause.ts'

/** Where records live, in words that a child process understands. */
export type Address =
  | { readonly kind: 'sqlite'; readonly path: string }
  | { readonly kind: 'postgres'; readonly url: string }

export type CrashStore = TransactionalStore<SqlTx>

export interface Opened {
  readonly store: CrashStore
  close(): Promise<void>
}

/** `name` is what PostgreSQL calls our connections, so that another process can see when they are gone. */
export function openStore(address: Address, name = 'onceonly-test'): Opened {
  if (address.kind === 'sqlite') {
    const store = sqliteStore(address.path, { testClock: true })
    return { store, close: () => store.stop() }
  }
  const pool = new Pool({ connectionString: address.url, application_name: name, max: 12 })
  // The database is dropped with the test, and its server may say so to connections that are just ending.
  pool.on('error', () => {})
  const store = postgresStore(pool, { testClock: true })
  const close = async () => {
    await store.stop()
    await pool.end()
  }
  return { store, close }
}

/** A fresh store with a business table beside it and a folder for what happens outside of it. */
export interface Place {
  readonly address: Address
  readonly folder: string
  /** This process's own. */
  readonly store: CrashStore
  /** Processes that end with the place at the latest. */
  readonly crew: Crew
  /** One more store on the same data, in this process. */
  another(): CrashStore
  /** What committed effects wrote, one entry per write, so that doubles are seen. */
  business(): Promise<readonly { readonly key: string; readonly value: string }[]>
  advance(ms: number): Promise<void>
  /**
   * Pauses a process between its writes: one that is stopped in the middle of one would keep the only writer of a SQLite
   * file from all other processes, for as long as it stands.
   */
  pause(child: Child): Promise<void>
  /** Until the server has noticed that these connections are gone: what they had begun is decided then. */
  forgotten(name: string): Promise<void>
  end(): Promise<void>
}

/** Asked when it is needed: a laboratory starts its server after this was loaded. */
function postgresUrl(): string | undefined {
  const url = process.env['ONCEONLY_TEST_POSTGRES_URL']
  if (url === undefined && process.env['CI'] === 'true') throw new Error('ONCEONLY_TEST_POSTGRES_URL is not set')
  return url
}

export type PlaceKind = Address['kind']
export const placeKinds: readonly PlaceKind[] = ['sqlite', 'postgres']
/** For node:test: why a place is left out, or false. */
export const skipOf = (kind: PlaceKind) =>
  kind === 'postgres' && postgresUrl() === undefined ? 'no PostgreSQL server' : false

const CALL = { timeoutMs: 60_000 }
const PAUSE = { ...CALL, lockMs: 60_000, refuseTwinOf: null }

export async function createPlace(kind: PlaceKind): Promise<Place> {
  const folder = await mkdtemp(join(tmpdir(), 'onceonly-crash-'))
  const database = kind === 'postgres' ? await createDatabase(postgresUrl() ?? '') : null
  const address: Address =
    database === null ? { kind: 'sqlite', path: join(folder, 'records.db') } : { kind: 'postgres', url: database.url }
  const opened: Opened[] = []
  const another = () => {
    const one = openStore(address)
    opened.push(one)
    return one.store
  }
  const crew = createCrew()
  const store = another()
  const sql = sqlOf(store)
  await sql.query('create table business (place integer, key text not null, value text not null)')
  return {
    address,
    folder,
    store,
    crew,
    another,
    business: () => sql.query<{ key: string; value: string }>('select key, value from business order by key'),
    // Holding the writer here means that no other process holds it.
    pause: ({ pid }) => store.transactions.run(() => pauseOne(pid), PAUSE),
    advance: (ms) => store.clock.advance(ms, CALL),
    forgotten: (name) => (database === null ? Promise.resolve() : untilForgotten(store, name)),
    async end() {
      await crew.end()
      for (const { close } of opened) await close()
      await database?.drop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

export function sqlOf(store: CrashStore): NonNullable<CrashStore['sql']> {
  if (store.sql === undefined) throw new Error('an SQL store has an SQL seam')
  return store.sql
}

/** The same store, as rooms with tables of their own want it. */
export function sqlStore(store: CrashStore): SqlStore {
  return Object.assign(store, { sql: sqlOf(store) })
}

async function untilForgotten(store: CrashStore, name: string): Promise<void> {
  const text = 'select pid from pg_stat_activity where datname = current_database() and application_name = ?'
  await until(
    `PostgreSQL serves ${name} no more, whose process is gone`,
    () => sqlOf(store).query(text, [name]),
    ({ length }) => length === 0,
  )
}

/** The same test on both SQL stores, each with a place of its own that is gone afterwards. */
export function onEveryPlace(title: string, body: (place: Place) => Promise<void>): void {
  for (const kind of placeKinds) onPlace(kind, title, body)
}

/** The same at once, where a test waits most of its time for disks, servers and timers and kills no process. */
export function onEveryPlaceAtOnce(title: string, body: (place: Place) => Promise<void>): void {
  describe(title, { concurrency: true }, () => onEveryPlace(title, body))
}

export function onPlace(kind: PlaceKind, title: string, body: (place: Place) => Promise<void>): void {
  test(`${title} (${kind})`, { skip: skipOf(kind) }, async () => {
    const place = await createPlace(kind)
    try {
      await body(place)
    } finally {
      await place.end()
    }
  })
}

export const who = (key: string) => ({ tenant: 'acme', caller: 'ann', key })
