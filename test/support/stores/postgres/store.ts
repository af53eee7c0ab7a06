import { randomBytes } from 'node:crypto'
import type { TestContext } from 'node:test'
import { after, test } from 'node:test'
import type { PoolConfig } from 'pg'
import { Client, Pool } from 'pg'
import type { ClaimRequest, Grant, Request } from '../../../../src/ledger/core/request.ts'
import type { Applied, Call } from '../../../../src/ledger/store/port.ts'
import { claimOf } from '../../../../src/ledger/store/test-requests.ts'
import type { OwnClaims } from '../../../../src/ledger/stores/postgres/claims.ts'
import type { PostgresStore, PostgresStoreOptions } from '../../../../src/ledger/stores/postgres/index.ts'
import { postgresStore } from '../../../../src/ledger/stores/postgres/index.ts'

export { claimOf, DONE, POLICY, settleOf } from '../../../../src/ledger/store/test-requests.ts'

/** What the tests of this store share: a database for each file, a schema for each test, and common requests. */

/** Long, so that only calls that a test blocks on purpose time out. */
export const CALL = { timeoutMs: 60_000 }
export const TRANSACTION = { timeoutMs: 60_000, lockMs: 30_000, refuseTwinOf: null }

const serverUrl = process.env['ONCEONLY_TEST_POSTGRES_URL']
if (serverUrl === undefined && process.env['CI'] === 'true') throw new Error('ONCEONLY_TEST_POSTGRES_URL is not set')

/** A test that needs a server; without one it is skipped, and says so. */
export function testPostgres(name: string, body: (t: TestContext) => Promise<void>): void {
  test(
    name,
    { skip: serverUrl === undefined ? 'SKIPPED: no PostgreSQL server (ONCEONLY_TEST_POSTGRES_URL)' : false },
    body,
  )
}

let database: Promise<string> | null = null

/** The URL of this file's own database. */
export function databaseUrl(): Promise<string> {
  database ??= createDatabase()
  return database
}

async function createDatabase(): Promise<string> {
  const name = `onceonly_test_${randomBytes(8).toString('hex')}`
  await alone(`CREATE DATABASE ${name} TEMPLATE template0`)
  const url = new URL(serverUrl as string)
  url.pathname = `/${name}`
  return url.href
}

after(async () => {
  if (database !== null)
    await alone(`DROP DATABASE IF EXISTS ${new URL(await database).pathname.slice(1)} WITH (FORCE)`)
})

async function alone(statement: string): Promise<void> {
  const client = new Client({ connectionString: serverUrl as string })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}

const cleanups = new WeakMap<TestContext, (() => Promise<void>)[]>()

/** Ends in reverse order: a pool waits for the stores on it. */
export function atEnd(t: TestContext, end: () => Promise<void>): void {
  const known = cleanups.get(t)
  const ends = known ?? []
  ends.push(end)
  if (known !== undefined) return
  cleanups.set(t, ends)
  t.after(async () => {
    for (const each of ends.toReversed()) await each()
  })
}

export async function freshPool(t: TestContext, options: PoolConfig = {}): Promise<Pool> {
  const pool = new Pool({ connectionString: await databaseUrl(), max: 10, ...options })
  // A database that is dropped ends the sessions that are still closing.
  pool.on('error', () => undefined)
  atEnd(t, () => pool.end())
  return pool
}

/** How many connections of a pool are open, as its driver has noticed so far. */
export function openOf(pool: Pool): () => number {
  let open = 0
  pool.on('connect', (client) => {
    open += 1
    client.once('end', () => void (open -= 1))
  })
  return () => open
}

export function freshSchema(): string {
  return `s_${randomBytes(6).toString('hex')}`
}

/** A store with a pool of its own. Stores with the same schema are what two processes would have. */
export async function openStore(
  t: TestContext,
  options: Partial<PostgresStoreOptions> = {},
  pool?: Pool,
): Promise<PostgresStore> {
  const own = pool ?? (await freshPool(t))
  const store = postgresStore(own, { testClock: true, schema: freshSchema(), ...options })
  atEnd(t, () => store.stop())
  return store
}

/** In the order that the port requires. */
export function byId<T extends { readonly id: string }>(rows: readonly T[]): T[] {
  return rows.toSorted((a, b) => (a.id < b.id ? -1 : 1))
}

export function kindOf(applied: Applied | undefined): string {
  return applied === undefined || 'error' in applied ? (applied?.error.code ?? 'nothing') : applied.decision.kind
}

/** The lease of a claim that must have been granted. */
export function leaseOf(applied: Applied<ClaimRequest> | undefined): Grant {
  if (applied === undefined || 'error' in applied) throw new Error('the claim failed', { cause: applied?.error })
  if (!('lease' in applied.decision)) throw new Error(`the claim was answered ${applied.decision.kind}`)
  return applied.decision.lease
}

export async function claimIn(store: PostgresStore, key: string, fields: Partial<ClaimRequest> = {}): Promise<Grant> {
  const applied = await store.claims.apply(claimOf(key, fields), CALL)
  return leaseOf(applied)
}

export async function claimAll(store: PostgresStore, keys: readonly string[]): Promise<Grant[]> {
  const answers = await flush(store, byId(keys.map((key) => claimOf(key))), CALL)
  return answers.map(leaseOf)
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms))
}

/** Decides requests in one batch, as the group commit of the store does. */
export function flush<R extends Request>(
  { claims }: PostgresStore,
  requests: readonly R[],
  call: Call,
): Promise<readonly Applied<R>[]> {
  return (claims as OwnClaims).flush(requests, call) as Promise<readonly Applied<R>[]>
}
