import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import type { Ledger, LedgerEvent, LedgerOptions, SqlTx, TransactionalStore } from 'onceonly'
import { createLedger } from 'onceonly'
import type { MemoryTx } from 'onceonly/memory'
import { memoryStore } from 'onceonly/memory'
import { postgresStore } from 'onceonly/postgres'
import { sqliteStore } from 'onceonly/sqlite'
import { Pool } from 'pg'
import { createDatabase } from '../../../tools/servers/database.ts'

/** One store with a business table beside it, so that a test can ask whether an effect's writes are there. */
export interface World<Tx = unknown> {
  readonly store: TransactionalStore<Tx>
  /** A second store on the same data, as another process would have it. Memory gives the same one. */
  another(): Promise<TransactionalStore<Tx>>
  write(tx: Tx, row: string): Promise<void>
  written(): Promise<readonly string[]>
  advance(ms: number): Promise<void>
  end(): Promise<void>
}

interface Place {
  readonly name: 'memory' | 'sqlite' | 'postgres'
  readonly skip: string | false
  open(): Promise<World>
}

const postgresUrl = process.env['ONCEONLY_TEST_POSTGRES_URL']
if (postgresUrl === undefined && process.env['CI'] === 'true') throw new Error('ONCEONLY_TEST_POSTGRES_URL is not set')

const places: readonly Place[] = [
  { name: 'memory', skip: false, open: openMemory },
  { name: 'sqlite', skip: false, open: openSqlite },
  { name: 'postgres', skip: postgresUrl === undefined ? 'no PostgreSQL server' : false, open: openPostgres },
]

const call = { timeoutMs: 60_000 }

async function openMemory(): Promise<World> {
  const store = memoryStore({ testClock: true })
  const inTx = <T>(work: (tx: MemoryTx) => T) =>
    store.transactions.run(async ({ tx }) => work(tx), { ...call, lockMs: 60_000, refuseTwinOf: null })
  const world: World<MemoryTx> = {
    store,
    another: async () => store,
    write: async (tx, row) => tx.set('rows', [...((tx.get('rows') as string[] | undefined) ?? []), row]),
    written: () => inTx((tx) => (tx.get('rows') as string[] | undefined) ?? []),
    advance: (ms) => store.clock.advance(ms, call),
    end: () => store.stop(),
  }
  return world as World
}

async function openSqlite(): Promise<World> {
  const folder = await mkdtemp(join(tmpdir(), 'onceonly-ledger-'))
  const path = join(folder, 'ledger.db')
  const stores: TransactionalStore<SqlTx>[] = []
  const another = async () => {
    const store = sqliteStore(path, { testClock: true })
    stores.push(store)
    return store
  }
  return sqlWorld(await another(), another, async () => {
    for (const store of stores) await store.stop()
    await rm(folder, { recursive: true, force: true })
  })
}

async function openPostgres(): Promise<World> {
  const database = await createDatabase(postgresUrl as string)
  const ends: (() => Promise<void>)[] = []
  const another = async (): Promise<TransactionalStore<SqlTx>> => {
    const pool = new Pool({ connectionString: database.url, max: 20 })
    pool.on('error', () => {})
    const store = postgresStore(pool, { testClock: true })
    ends.push(() => store.stop().then(() => pool.end()))
    return store
  }
  return sqlWorld(await another(), another, async () => {
    for (const end of ends) await end()
    await database.drop()
  })
}

async function sqlWorld(
  store: TransactionalStore<SqlTx>,
  another: () => Promise<TransactionalStore<SqlTx>>,
  end: () => Promise<void>,
): Promise<World> {
  const sql = store.sql
  if (sql === undefined) throw new Error('an SQL store has an SQL seam')
  await sql.query('create table business (id text primary key)')
  const world: World<SqlTx> = {
    store,
    another,
    write: async (tx, row) => void (await tx.query('insert into business (id) values (?)', [row])),
    written: async () => (await sql.query<{ id: string }>('select id from business order by id')).map(({ id }) => id),
    advance: (ms) => store.clock.advance(ms, call),
    end,
  }
  return world as World
}

export interface Bench {
  readonly world: World
  readonly once: Ledger<unknown>
  readonly events: LedgerEvent[]
  /** Another ledger on the same data, as a second process has it. */
  second(options?: Partial<LedgerOptions<TransactionalStore<unknown>>>): Promise<Ledger<unknown>>
}

/** The same test on every store. Background work is by hand, so that nothing happens by itself. */
export function onEveryStore(title: string, body: (bench: Bench) => Promise<void>): void {
  onPlaces(places, title, body)
}

/** For rooms that keep tables of their own. */
export function onSqlStores(title: string, body: (bench: Bench) => Promise<void>): void {
  const inSql = places.filter(({ name }) => name !== 'memory')
  onPlaces(inSql, title, body)
}

function onPlaces(chosen: readonly Place[], title: string, body: (bench: Bench) => Promise<void>): void {
  // At once: each has a world of its own, and waits most of its time for a disk, a server or a timer.
  describe(title, { concurrency: true }, () => {
    for (const place of chosen) {
      test(place.name, { skip: place.skip }, async () => {
        const world = await place.open()
        const events: LedgerEvent[] = []
        const ledgers: Ledger<unknown>[] = []
        const open = (store: TransactionalStore<unknown>, options = {}) => {
          const ledger = createLedger({ store, background: false, on: (event) => events.push(event), ...options })
          ledgers.push(ledger)
          return ledger
        }
        const once = open(world.store)
        try {
          await body({ world, once, events, second: async (options) => open(await world.another(), options) })
        } finally {
          for (const ledger of ledgers) await ledger.stop()
          await world.end()
        }
      })
    }
  })
}

export const kinds = (events: readonly LedgerEvent[]) => events.map((event) => event.kind)
export const who = (key: string) => ({ tenant: 'acme', caller: 'ann', key })

/** An effect that a test can watch and end: no test has to guess how long a store takes. */
export interface Held<T> {
  effect(): Promise<T>
  readonly begun: Promise<void>
  finish(value: T): void
}

export function createHeld<T>(): Held<T> {
  const begun = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<T>()
  return {
    begun: begun.promise,
    effect: () => {
      begun.resolve()
      return ended.promise
    },
    finish: ended.resolve,
  }
}

/** The same store with a promise that resolves when a claim was answered. */
export function watchClaims(store: TransactionalStore<unknown>) {
  const claimed = Promise.withResolvers<void>()
  const apply: typeof store.claims.apply = async (request, call) => {
    const applied = await store.claims.apply(request, call)
    if (request.kind === 'claim') claimed.resolve()
    return applied
  }
  return { store: { ...store, claims: { ...store.claims, apply } }, claimed: claimed.promise }
}
