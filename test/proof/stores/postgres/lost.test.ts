import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { createLedger } from 'onceonly'
import type { Pool } from 'pg'
import type { RecordsLost } from '../../../../src/ledger/stores/postgres/index.ts'
import { postgresStore } from '../../../../src/ledger/stores/postgres/index.ts'
import { until } from '../../../../src/testing/until.ts'
import { atEnd, CALL, freshPool, freshSchema, openOf, testPostgres } from '../../../support/stores/postgres/store.ts'

/** A standby that did not follow synchronously was promoted: what the store says about the records that it does not have. */

const who = (key: string) => ({ tenant: 'acme', caller: 'web', key })

async function openWatched(t: TestContext) {
  const schema = freshSchema()
  const admin = await freshPool(t)
  const pool = await freshPool(t, { application_name: schema })
  const open = openOf(pool)
  const lost: RecordsLost[] = []
  const store = postgresStore(pool, { schema, testClock: true, on: (event) => lost.push(event) })
  atEnd(t, () => store.stop())
  const once = createLedger({ store, background: false })
  atEnd(t, () => once.stop())
  return { schema, admin, open, lost, store, once }
}

/** Every session ends, as with the server that they led to; the next call finds its successor. */
async function failOver(admin: Pool, schema: string, open: () => number): Promise<void> {
  await admin.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1', [schema])
  await until('the driver has noticed', () => open() === 0)
}

testPostgres(
  'records that a successor does not have are reported, once, under a lease and in transactions',
  async (t) => {
    const { schema, admin, open, lost, store, once } = await openWatched(t)
    const charge = once.operation<null>({ name: 'charge', effect: 'external', fingerprint: () => null })
    const order = once.operation<null>({ name: 'order', effect: 'transaction', fingerprint: () => null })
    await charge.run(who('kept'), null, () => 1)
    await charge.run(who('missing'), null, () => 1)
    await charge.run(who('reopened'), null, () => 1)
    await order.run(who('ordered'), null, () => 1)
    const ids = async (keys: string[]) => {
      const text = `SELECT replace(id::text, '-', '') AS id FROM ${schema}.onceonly_records WHERE key = ANY ($1)`
      return (await admin.query<{ id: string }>(text, [keys])).rows.map(({ id }) => id)
    }
    const expected = await ids(['missing', 'reopened', 'ordered'])
    await admin.query(`DELETE FROM ${schema}.onceonly_records WHERE key IN ('missing', 'ordered')`)
    // Its claim had reached the standby, and its outcome had not.
    await admin.query(`UPDATE ${schema}.onceonly_records SET state = 1 WHERE key = 'reopened'`)
    await failOver(admin, schema, open)
    await store.clock.now(CALL)
    assert.deepEqual(
      lost.map(({ ids: named, of }) => ({ named: new Set(named), of })),
      [{ named: new Set(expected), of: 4 }],
    )
    await failOver(admin, schema, open)
    await store.clock.now(CALL)
    assert.equal(lost.length, 1, 'once')
  },
)

testPostgres('a failover that loses nothing reports nothing, also where records have passed their end', async (t) => {
  const { schema, admin, open, lost, store, once } = await openWatched(t)
  const charge = once.operation<null>({ name: 'charge', effect: 'external', fingerprint: () => null, retainMs: 1_000 })
  await charge.run(who('swept'), null, () => 1)
  await store.clock.advance(60_000, CALL)
  await store.upkeep.sweep(null, 100, CALL)
  await charge.run(who('there'), null, () => 1)
  await failOver(admin, schema, open)
  await store.clock.now(CALL)
  assert.deepEqual(lost, [])
})
