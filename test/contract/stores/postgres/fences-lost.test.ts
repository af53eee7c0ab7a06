import assert from 'node:assert/strict'
import { isOnceError } from 'onceonly'
import type { Pool } from 'pg'
import type { PgPool, PostgresStore } from '../../../../src/ledger/stores/postgres/index.ts'
import { postgresStore } from '../../../../src/ledger/stores/postgres/index.ts'
import { namesIn } from '../../../../src/ledger/stores/postgres/names.ts'
import { until } from '../../../../src/testing/until.ts'
import { untilLocked, whileHeld } from '../../../support/stores/postgres/sessions.ts'
import {
  atEnd,
  claimIn,
  freshPool,
  freshSchema,
  openOf,
  openStore,
  testPostgres,
} from '../../../support/stores/postgres/store.ts'

/** How a store notices that its server may be another one, and what it does with the sequence of that one. */

async function fenceOf(store: PostgresStore, key: string): Promise<number> {
  return (await claimIn(store, key)).fence
}

/** The sequence is behind, as after a switchover, and the store's sessions are ended. */
async function switchOver(admin: Pool, schema: string): Promise<void> {
  await admin.query(`SELECT setval('${schema}.onceonly_fences', 1000)`)
  await admin.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1', [schema])
}

testPostgres('a statement that failed with its connection is enough to look at the fences again', async (t) => {
  const schema = freshSchema()
  const admin = await freshPool(t)
  const pool = await freshPool(t, { application_name: schema })
  // A pool without events about its clients.
  const quiet: PgPool = {
    connect: async () => {
      const client = await pool.connect()
      client.on('error', () => undefined)
      return client as never
    },
    on: () => undefined,
    options: pool.options,
  } as never
  const store = postgresStore(quiet, { schema, testClock: true })
  atEnd(t, () => store.stop())
  const first = await fenceOf(store, 'a')
  const { failing } = await whileHeld(admin, `LOCK TABLE ${schema}.onceonly_records`, async () => {
    const under = assert.rejects(claimIn(store, 'under way'))
    await untilLocked(admin, 'onceonly_records')
    await switchOver(admin, schema)
    return { failing: under }
  })
  await failing
  const second = await until(
    'the store is back',
    () =>
      fenceOf(store, 'b').catch((error: unknown) => {
        if (!isOnceError(error)) throw error
        return null
      }),
    (fence) => fence !== null,
  )
  assert.ok((second ?? 0) > first, `${second} after ${first}`)
})

testPostgres('a connection that broke while it was idle is enough to look at the fences again', async (t) => {
  const schema = freshSchema()
  const admin = await freshPool(t)
  const pool = await freshPool(t, { application_name: schema })
  const open = openOf(pool)
  const store = await openStore(t, { schema }, pool)
  const first = await fenceOf(store, 'a')
  await switchOver(admin, schema)
  // No statement fails: the driver has noticed before the next one.
  await until('the driver has noticed', () => open() === 0)
  const second = await fenceOf(store, 'b')
  assert.ok(second > first, `${second} after ${first}`)
})

testPostgres('a record that is just ahead of its sequence is passed, too', async (t) => {
  const schema = freshSchema()
  const admin = await freshPool(t)
  await claimIn(await openStore(t, { schema }), 'a')
  // Ahead of the clock, so that the clock alone would lift nothing.
  const last = Date.now() * 1_000 + 3_600_000_000
  await admin.query(`SELECT setval('${schema}.onceonly_fences', $1)`, [last])
  await admin.query(`UPDATE ${schema}.onceonly_records SET fence = $1`, [last + 5])
  const fence = await fenceOf(await openStore(t, { schema }), 'b')
  assert.ok(fence > last + 5, `${fence} after ${last + 5}`)
})

testPostgres('stores lift the fences one after the other, and each looks again', async (t) => {
  const schema = freshSchema()
  const admin = await freshPool(t)
  await claimIn(await openStore(t, { schema }), 'a')
  await admin.query(`SELECT setval('${schema}.onceonly_fences', 1000)`)
  const lifted = Date.now() * 1_000 + 3_600_000_000
  const lock = `SELECT pg_advisory_xact_lock(${namesIn(schema).migrationLock})`
  const { starting } = await whileHeld(admin, lock, async () => {
    const fence = openStore(t, { schema }).then((store) => fenceOf(store, 'b'))
    await untilLocked(admin, 'pg_advisory_xact_lock')
    await admin.query(`SELECT setval('${schema}.onceonly_fences', $1)`, [lifted])
    return { starting: fence }
  })
  assert.ok((await starting) > lifted)
})
