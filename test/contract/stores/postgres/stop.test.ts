import assert from 'node:assert/strict'
import { createLedger } from 'onceonly'
import { createOutbox, createRelay } from 'onceonly/outbox'
import type { PostgresStore } from 'onceonly/postgres'
import { postgresStore } from 'onceonly/postgres'
import { createEngine, defineRun } from 'onceonly/run'
import { Pool } from 'pg'
import { until } from '../../../../src/testing/until.ts'
import { databaseUrl, freshSchema, testPostgres } from '../../../support/stores/postgres/store.ts'

/** After the last `stop` on a store the pool can be ended: nothing keeps one of its clients. */

async function opened(): Promise<{ readonly pool: Pool; readonly store: PostgresStore }> {
  const pool = new Pool({ connectionString: await databaseUrl(), max: 10 })
  pool.on('error', () => undefined)
  return { pool, store: postgresStore(pool, { schema: freshSchema() }) }
}

/** Claims, and waits for a duplicate in another process, which takes a listener. */
async function work(store: PostgresStore) {
  const [one, two] = [createLedger({ store }), createLedger({ store })]
  const started = Promise.withResolvers<void>()
  const end = Promise.withResolvers<string>()
  const send = { name: 'mail.send', effect: 'external' } as const
  const who = { tenant: 'acme', caller: 'web', key: 'k1' }
  const first = one.operation(send).run(who, null, () => {
    started.resolve()
    return end.promise
  })
  await started.promise
  const joined = two.operation(send).run(who, null, () => assert.fail('it ran twice'))
  await until('the twin waits', async () => {
    const { rows } = await store.queries.list({}, { limit: 1, cursor: null }, { timeoutMs: 10_000 })
    return rows[0]?.record.awaited === true
  })
  end.resolve('sent')
  assert.deepEqual(await Promise.all([first, joined]), ['sent', 'sent'])
  return [one, two]
}

testPostgres('a pool ends after its ledger was stopped', async () => {
  const { pool, store } = await opened()
  for (const ledger of await work(store)) await ledger.stop()
  await pool.end()
  assert.equal(pool.totalCount, 0)
  // Stopping what has nothing left is harmless.
  await store.stop()
})

testPostgres('a pool ends after ledger, engine and relay were stopped, in any order', async () => {
  const run = defineRun('charge', (context) => context.step('charge', () => 'charged'))
  for (const order of [
    [0, 1, 2],
    [2, 1, 0],
    [1, 2, 0],
    // The ledger ends what was made from it.
    [0],
  ]) {
    const { pool, store } = await opened()
    const ledger = createLedger({ store })
    await createOutbox({ ledger }).prepare()
    const engine = await createEngine({ ledger, runs: [run], pollMs: 20 })
    const publish = async (messages: readonly unknown[]) => messages.map(() => ({ kind: 'confirmed' }) as const)
    const relay = createRelay({ ledger, publisher: { name: 'desk', publish } })
    assert.equal(await (await engine.start(run, { runId: 'r1', input: null })).result(), 'charged')
    const parts = [ledger, engine, relay]
    for (const at of order) await parts[at]?.stop()
    await pool.end()
    assert.equal(pool.totalCount, 0)
  }
})

testPostgres('a ledger that stops takes nothing from another one on its store', async () => {
  const { pool, store } = await opened()
  const [one, two] = await work(store)
  await one?.stop()
  const again = two?.operation({ name: 'mail.again', effect: 'external' })
  assert.equal(await again?.run({ tenant: 'acme', caller: 'web', key: 'k2' }, null, async () => 'sent'), 'sent')
  await two?.stop()
  await pool.end()
})
