import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { createLedger, isOnceError } from 'onceonly'
import type { Publisher } from 'onceonly/outbox'
import { createOutbox, createRelay } from 'onceonly/outbox'
import { postgresStore } from 'onceonly/postgres'
import { createEngine, defineRun } from 'onceonly/run'
import type { Pool } from 'pg'
import { until } from '../../../../src/testing/until.ts'
import { startPgbouncer } from '../../../../tools/servers/pgbouncer.ts'
import { quietLedger } from '../../../support/quiet-ledger.ts'
import { databaseUrl, freshPool, freshSchema, testPostgres } from '../../../support/stores/postgres/store.ts'

/** Pools of one connection, and pools behind PgBouncer in transaction mode. */

const who = { tenant: 'acme', caller: 'web' }

async function shop(t: TestContext, pool: Pool) {
  const schema = freshSchema()
  const store = postgresStore(pool, { schema })
  await store.sql.migrate('shop', [{ version: 1, oldestCode: 1, up: () => ['CREATE TABLE orders (name text)'] }])
  const once = createLedger({ store })
  const outbox = createOutbox({ ledger: once })
  await outbox.prepare()
  t.after(async () => {
    await once.stop()
    await store.stop()
  })
  const place = once.operation<string>({ name: 'order.place', effect: 'transaction' })
  const names = async () => {
    const rows = await store.sql.query<{ name: string }>('SELECT name FROM orders ORDER BY name')
    return rows.map(({ name }) => name)
  }
  return { schema, store, once, place, names }
}

const poolers = {
  'a pool of one': async (t: TestContext) => freshPool(t, { max: 1 }),
  PgBouncer: async (t: TestContext) => {
    const url = new URL(await databaseUrl())
    const pooler = await startPgbouncer(url.href)
    if (pooler === null) {
      t.skip('no PgBouncer')
      return null
    }
    t.after(() => pooler.stop())
    return freshPool(t, { connectionString: new URL(url.pathname, pooler.url).href })
  },
}

for (const [name, open] of Object.entries(poolers)) {
  testPostgres(`${name}: operations, the outbox and runs work, and leave nothing on the sessions`, async (t) => {
    const pool = await open(t)
    if (pool === null) return
    const { schema, store, once, place, names } = await shop(t, pool)
    const capture = once.operation<string>({ name: 'payment.capture', effect: 'external' })
    const keys = Array.from({ length: 20 }, (_, n) => `k-${n}`)
    await Promise.all(
      keys.map(async (key) => {
        // The effect uses the same pool, beside the claim.
        await capture.run({ ...who, key }, key, async () => void (await pool.query('SELECT 1')))
        await place.run({ ...who, key }, key, async (context) => {
          await context.tx.query('INSERT INTO orders (name) VALUES (?)', [key])
          await context.outbox.add({ topic: 'orders.placed', key, body: key })
        })
      }),
    )
    const taken: string[] = []
    const publisher: Publisher = {
      name: 'list',
      publish: async (messages) => {
        taken.push(...messages.map(({ key }) => String(key)))
        return messages.map(() => ({ kind: 'confirmed' }))
      },
    }
    const relay = createRelay({ ledger: quietLedger(store), publisher })
    await until('the messages are published', () => taken.length === keys.length)
    await relay.stop()
    const run = defineRun('ship', async (context, input: string) => {
      const packed = await context.step('pack', () => `${input} packed`)
      return context.step('note', { semantics: 'transactional' }, async ({ tx }) => {
        await tx.query('INSERT INTO orders (name) VALUES (?)', [packed])
        return packed
      })
    })
    const engine = await createEngine({ ledger: quietLedger(store), runs: [run] })
    const handle = await engine.start(run, { runId: 'r', input: 'box' })
    assert.equal(await handle.result({ waitMs: 60_000 }), 'box packed')
    await engine.stop()
    assert.deepEqual(await names(), ['box packed', ...keys].toSorted())
    await once.stop()

    // The next user of one of these sessions finds it as the server made it.
    const { rows } = await pool.query(
      `SELECT (SELECT count(*)::int FROM pg_prepared_statements) AS prepared,
         (SELECT count(*)::int FROM pg_listening_channels()) AS listening,
         (SELECT count(*)::int FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()) AS locks,
         current_setting('enable_seqscan') AS seqscan, current_setting('lock_timeout') AS wait,
         current_setting('search_path') LIKE $1 AS moved`,
      [`%${schema}%`],
    )
    assert.deepEqual(rows, [{ prepared: 0, listening: 0, locks: 0, seqscan: 'on', wait: '0', moved: false }])
  })

  testPostgres(`${name}: a change of another process is noticed by polling`, async (t) => {
    const pool = await open(t)
    if (pool === null) return
    const { store, schema } = await shop(t, pool)
    const other = postgresStore(await freshPool(t), { schema })
    t.after(() => other.stop())
    let wakes = 0
    const watch = store.sql.listen('proof', () => void wakes++)
    await watch.ready
    await other.sql.query(`SELECT ${other.sql.wake('proof')}`)
    await until('the listener looks', () => wakes > 0)
    watch.stop()
  })
}

testPostgres('a transaction on the only connection fails at once when it needs another', async (t) => {
  const pool = await freshPool(t, { max: 1 })
  const { store, once, place, names } = await shop(t, pool)
  const inside = place.run({ ...who, key: 'a' }, 'a', async ({ tx }) => {
    await tx.query("INSERT INTO orders (name) VALUES ('a')")
    await store.sql.query('SELECT 1')
  })
  await assert.rejects(inside, (error: Error) => {
    assert.ok(isOnceError(error, 'pool_exhausted'), error.message)
    assert.equal(
      error.message,
      'The only client of the pool is held by a transaction that waits for another one, which would never come. ' +
        'Use `tx`, or a larger pool.',
    )
    return true
  })
  // A nested transaction is a part of the open one and needs no other connection; sweeps wait for their turn.
  const audit = once.operation({ name: 'order.audit', effect: 'transaction' })
  const nested = place.run({ ...who, key: 'a' }, 'a', async ({ tx }) => {
    await audit.run({ ...who, key: 'a' }, null, async (inner) => {
      await inner.tx.query("INSERT INTO orders (name) VALUES ('audited')")
    })
    await tx.query("INSERT INTO orders (name) VALUES ('a')")
  })
  await Promise.all([nested, once.upkeep.sweep(), once.upkeep.reconcile()])
  assert.deepEqual(await names(), ['a', 'audited'])
})

testPostgres(
  'two transactions on two connections that wait for a third: one fails, and the other continues',
  async (t) => {
    const { store, place, names } = await shop(t, await freshPool(t, { max: 2 }))
    const both = Promise.withResolvers<void>()
    let begun = 0
    const results = await Promise.allSettled(
      ['a', 'b'].map((key) =>
        place.run({ ...who, key }, key, async ({ tx }) => {
          await tx.query('INSERT INTO orders (name) VALUES (?)', [key])
          if (++begun === 2) both.resolve()
          await both.promise
          await store.sql.query('SELECT 1')
        }),
      ),
    )
    const failed = results.filter((result) => result.status === 'rejected')
    assert.equal(failed.length, 1)
    assert.ok(isOnceError(failed[0]?.reason, 'pool_exhausted'))
    assert.equal((await names()).length, 1)
  },
)

testPostgres('an effect that waits for its own pool ends with its transaction, and learns why', async (t) => {
  const pool = await freshPool(t, { max: 1 })
  const { store, names } = await shop(t, pool)
  const work = () => pool.query("INSERT INTO orders (name) VALUES ('beside')")
  const stuck = store.transactions.run(work, { timeoutMs: 1_000, lockMs: 1_000, refuseTwinOf: null })
  await assert.rejects(stuck, (error: Error) => {
    assert.match(
      error.message,
      /Meanwhile \d+ calls? waits? for one of the 1 clients of the pool: inside a transaction use `tx`/,
    )
    return isOnceError(error, 'transaction_too_long')
  })
  assert.deepEqual(await names(), [])
})

testPostgres('the mode of the pool can be given, and is checked', async (t) => {
  const pool = await freshPool(t, { max: 2 })
  assert.throws(() => postgresStore(pool, { poolMode: 'statement' as never }), {
    message: "postgresStore: `poolMode` must be 'auto', 'session' or 'transaction', not \"statement\".",
  })
  assert.throws(() => postgresStore(pool, { poolMode: 'session' }), {
    message:
      "`pool` has 2 clients (`max`), and `poolMode: 'session'` keeps some of them. Give it 3, or leave `poolMode` out.",
  })
  const large = await freshPool(t)
  const store = postgresStore(large, { schema: freshSchema(), poolMode: 'transaction' })
  await store.clock.now({ timeoutMs: 10_000 })
  await store.sql.query('SELECT 1', [], { hot: true })
  assert.equal(large.idleCount, large.totalCount)
  await store.stop()
})
