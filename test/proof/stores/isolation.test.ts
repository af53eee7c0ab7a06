import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import { createLedger } from 'onceonly'
import { postgresStore } from 'onceonly/postgres'
import { redisStore } from 'onceonly/redis'
import { createEngine, defineRun } from 'onceonly/run'
import { sqliteStore } from 'onceonly/sqlite'
import type { Pool } from 'pg'
import { quietLedger } from '../../support/quiet-ledger.ts'
import {
  claimOf,
  freshPool,
  freshSchema,
  openStore,
  TRANSACTION,
  testPostgres,
} from '../../support/stores/postgres/store.ts'
import type { Wings } from '../../support/stores/wings.ts'
import { createWings } from '../../support/stores/wings.ts'

/** Two stores on one server share nothing: neither rows nor locks nor wakes, whatever else is there. */

/** Fills all of them with the same keys, and looks for what belongs to another. */
async function shareNothing(wings: readonly Wings[]): Promise<void> {
  for (const one of wings) await one.fill()
  for (const one of wings) {
    const { taken, delivered } = await one.relayed()
    assert.deepEqual(
      taken.map(({ body }) => body),
      [JSON.stringify({ mark: one.mark })],
    )
    assert.deepEqual(delivered, [{ mark: one.mark }])
    const seen = await one.seen()
    for (const { mark } of wings) assert.equal(seen.includes(mark), mark === one.mark, `${one.mark} sees ${mark}`)
    // The run, the mail, the order, the message: each once.
    assert.equal(one.effects, 4)
  }
}

/** Which marks the tables of a schema hold, in any column. */
async function marksIn(pool: Pool, schema: string, marks: readonly string[]): Promise<readonly string[]> {
  const { rows: tables } = await pool.query<{ name: string }>(
    'SELECT quote_ident(tablename) AS name FROM pg_tables WHERE schemaname = $1',
    [schema],
  )
  const found = new Set<string>()
  for (const { name } of tables) {
    const { rows } = await pool.query<{ row: string }>(`SELECT t::text AS row FROM ${schema}.${name} AS t`)
    for (const { row } of rows) for (const mark of marks) if (row.includes(mark)) found.add(mark)
  }
  return [...found].toSorted()
}

testPostgres('two schemas and the tables of the search path share nothing, in every wing', async (t) => {
  const [a, b] = [freshSchema(), freshSchema()]
  const pool = await freshPool(t, { max: 40 })
  // The tables of `public` are there first: they must hide none of the store's tables.
  const places = [null, a, b].map((schema, index) => {
    const store = postgresStore(pool, schema === null ? {} : { schema })
    return { schema: schema ?? 'public', store, mark: `mark-of-${['public', 'a', 'b'][index]}` }
  })
  const wings: Wings[] = []
  for (const { store, mark } of places) wings.push(await createWings(store, mark))
  try {
    await shareNothing(wings)
  } finally {
    for (const one of wings) await one.stop()
    for (const { store } of places) await store.stop()
  }
  const marks = places.map(({ mark }) => mark)
  for (const { schema, mark } of places) assert.deepEqual(await marksIn(pool, schema, marks), [mark])
})

testPostgres('a search path of the pool that names other tables first changes nothing', async (t) => {
  const [other, schema] = [freshSchema(), freshSchema()]
  const pool = await freshPool(t, { options: `-c search_path=${other}`, max: 30 })
  await pool.query(`CREATE SCHEMA ${other}`)
  const stray = postgresStore(pool)
  const strayWings = await createWings(stray, 'mark-of-stray')
  const store = postgresStore(pool, { schema })
  const wings = await createWings(store, 'mark-of-own')
  try {
    await shareNothing([strayWings, wings])
    // The tables of the application are still found where its search path leads.
    await pool.query(`CREATE TABLE ${other}.orders (name text)`)
    await store.transactions.run(({ tx }) => tx.query('INSERT INTO orders VALUES (?)', ['one']), TRANSACTION)
    assert.deepEqual(await store.sql.query('SELECT name FROM orders'), [{ name: 'one' }])
  } finally {
    for (const one of [strayWings, wings]) await one.stop()
    for (const one of [stray, store]) await one.stop()
  }
  assert.deepEqual(await marksIn(pool, schema, ['mark-of-stray', 'mark-of-own']), ['mark-of-own'])
})

testPostgres('an engine without the schema does not make a restart run again what has run', async (t) => {
  const [path, schema] = [freshSchema(), freshSchema()]
  const pool = await freshPool(t, { options: `-c search_path=${path}` })
  await pool.query(`CREATE SCHEMA ${path}`)
  let charged = 0
  const charge = defineRun('charge', (run) =>
    run.step('charge', () => {
      charged += 1
    }),
  )
  const start = async (options: { readonly schema?: string }) => {
    const store = postgresStore(pool, options)
    const engine = await createEngine({ ledger: quietLedger(store), runs: [charge], pollMs: 20 })
    const before = (await engine.list({})).runs.map(({ runId }) => runId)
    if (options.schema !== undefined) await (await engine.start(charge, { runId: 'run-1', input: null })).result()
    await engine.stop()
    await store.stop()
    return before
  }
  assert.deepEqual(await start({ schema }), [])
  assert.deepEqual(await start({}), [])
  assert.deepEqual(await start({ schema }), ['run-1'])
  assert.equal(charged, 1)
})

testPostgres('a transaction in one schema is no duplicate in another', async (t) => {
  const [a, b] = [await openStore(t), await openStore(t)]
  const paths = [freshSchema(), freshSchema()]
  const unnamed = []
  for (const path of paths) {
    const pool = await freshPool(t, { options: `-c search_path=${path}` })
    await pool.query(`CREATE SCHEMA ${path}`)
    const store = postgresStore(pool)
    t.after(() => store.stop())
    unnamed.push(store)
  }
  const { id } = claimOf('k1')
  for (const [one, two] of [[a, b], unnamed]) {
    assert.ok(one !== undefined && two !== undefined)
    await one.transactions.run(
      async () => {
        const answers = await Promise.allSettled(
          [one, two].map((store) => store.transactions.run(async () => 'free', { ...TRANSACTION, refuseTwinOf: id })),
        )
        assert.deepEqual(
          answers.map(({ status }) => status),
          ['rejected', 'fulfilled'],
        )
      },
      { ...TRANSACTION, refuseTwinOf: id },
    )
  }
})

testPostgres('a wake in one schema is not heard in another', async (t) => {
  const [a, b] = [await openStore(t), await openStore(t)]
  const heard: string[] = []
  const watches = [
    a.sql.listen('proof', (cause) => heard.push(`a ${cause}`)),
    b.sql.listen('proof', (cause) => heard.push(`b ${cause}`)),
    b.sql.listen('end', (cause) => heard.push(`end ${cause}`)),
  ]
  for (const { ready } of watches) await ready
  const before = heard.length
  await a.sql.query(`SELECT ${a.sql.wake('proof')}`)
  // Notifications of one server come in the order of their commits: what comes after it would have come after the other.
  const { promise: ended, resolve } = Promise.withResolvers<void>()
  watches.push(b.sql.listen('end', (cause) => (cause === 'topic' ? resolve() : undefined)))
  await b.sql.query(`SELECT ${b.sql.wake('end')}`)
  await ended
  assert.ok(!heard.slice(before).includes('b topic'), heard.join())
  for (const watch of watches) watch.stop()
})

test('two SQLite files share nothing, in every wing', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'onceonly-isolation-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const stores = ['a', 'b'].map((name) => sqliteStore(join(folder, `${name}.db`)))
  const wings: Wings[] = []
  for (const [index, store] of stores.entries()) wings.push(await createWings(store, `mark-of-${index}`))
  try {
    await shareNothing(wings)
  } finally {
    for (const one of wings) await one.stop()
    for (const store of stores) await store.stop()
  }
})

const redisUrl = process.env['ONCEONLY_TEST_REDIS_URL']

test('two key prefixes in one Redis share nothing', { skip: redisUrl === undefined ? 'no Redis' : false }, async () => {
  const client = new Redis(redisUrl as string)
  const base = `isolation:${process.pid}`
  // One prefix begins with the other.
  const places = [base, `${base}:0`].map((prefix, index) => {
    const store = redisStore(client, { prefix })
    return { prefix, store, ledger: createLedger({ store, background: false }), mark: `mark-of-${index}` }
  })
  const woken: string[] = []
  const who = { tenant: 'acme', caller: 'shop', key: 'k1' }
  let effects = 0
  try {
    for (const { store, mark } of places) await store.claims.watch(() => woken.push(mark)).ready
    for (const { ledger, mark } of places) {
      const send = ledger.operation<string>({ name: 'mail.send', effect: 'external' })
      const value = async () => {
        effects += 1
        return mark
      }
      for (let again = 0; again < 2; again++) assert.equal(await send.run(who, mark, value), mark)
      const claimed = await ledger.unique('acme', 'order.number', 'one', { owner: mark })
      assert.equal(claimed.kind, 'claimed')
    }
    assert.equal(effects, 2)
    for (const { store, mark } of places) {
      const { rows } = await store.queries.list({}, { limit: 100, cursor: null }, { timeoutMs: 10_000 })
      const text = JSON.stringify(rows)
      for (const other of places) assert.equal(text.includes(other.mark), other.mark === mark)
    }
    for (const { prefix, mark } of places) {
      const own = (await client.keys(`{${prefix}:*`)).filter((key) => /^\d+\}/.test(key.slice(prefix.length + 2)))
      assert.ok(own.length > 0, mark)
    }
  } finally {
    for (const { ledger, store } of places) {
      await ledger.stop()
      await store.stop()
    }
    const keys = await client.keys(`{${base}:*`)
    if (keys.length > 0) await client.del(...keys)
    await client.quit()
  }
})
