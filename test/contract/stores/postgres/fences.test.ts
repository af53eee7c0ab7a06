import assert from 'node:assert/strict'
import { isOnceError } from 'onceonly'
import type { PostgresStore } from '../../../../src/ledger/stores/postgres/index.ts'
import {
  claimIn,
  claimOf,
  freshPool,
  freshSchema,
  leaseOf,
  openStore,
  TRANSACTION,
  testPostgres,
} from '../../../support/stores/postgres/store.ts'

/** A switchover by logical replication carries rows over, but no sequences: fences must grow all the same. */

async function fenceOf(store: PostgresStore, key: string): Promise<number> {
  return (await claimIn(store, key)).fence
}

async function fenceInTransaction(store: PostgresStore, key: string): Promise<number> {
  const claimed = await store.transactions.run(({ apply }) => apply(claimOf(key)), TRANSACTION)
  return leaseOf(claimed).fence
}

testPostgres('a store that starts after a switchover continues above every existing fence', async (t) => {
  const schema = freshSchema()
  const pool = await freshPool(t)
  const first = await fenceOf(await openStore(t, { schema }), 'a')
  await pool.query(`SELECT setval('${schema}.onceonly_fences', 1000)`)
  const second = await fenceOf(await openStore(t, { schema }), 'b')
  assert.ok(second > first, `${second} after ${first}`)
  // Records that are gone had fences, too: the clock is above all that it ever gave.
  await pool.query(`DELETE FROM ${schema}.onceonly_records; SELECT setval('${schema}.onceonly_fences', 1000)`)
  const third = await fenceInTransaction(await openStore(t, { schema }), 'c')
  assert.ok(third > second, `${third} after ${second}`)
  // A record may be ahead of the clock, too.
  const ahead = 2 ** 52
  await pool.query(`UPDATE ${schema}.onceonly_records SET fence = $1`, [ahead])
  assert.ok((await fenceOf(await openStore(t, { schema }), 'd')) > ahead)
})

testPostgres('a store whose connections a switchover ended continues above every existing fence', async (t) => {
  const schema = freshSchema()
  const admin = await freshPool(t)
  const pool = await freshPool(t, { application_name: schema })
  const store = await openStore(t, { schema }, pool)
  const first = await fenceOf(store, 'a')
  await admin.query(`SELECT setval('${schema}.onceonly_fences', 1000)`)
  await admin.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1', [schema])
  const later = async (): Promise<number> => {
    for (;;) {
      const fence = await fenceOf(store, 'b').catch((error: unknown) => {
        if (!isOnceError(error)) throw error
        return null
      })
      if (fence !== null) return fence
    }
  }
  const second = await later()
  assert.ok(second > first, `${second} after ${first}`)
})

testPostgres('stores that start at once never give a fence twice', async (t) => {
  const schema = freshSchema()
  await claimIn(await openStore(t, { schema }), 'first')
  const stores = await Promise.all(Array.from({ length: 6 }, () => openStore(t, { schema })))
  const fences = await Promise.all(
    stores.flatMap((store, at) => Array.from({ length: 20 }, (_, n) => fenceOf(store, `${at}-${n}`))),
  )
  assert.equal(new Set(fences).size, fences.length)
})
