import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { test } from 'node:test'
import type { Request } from '../../../../src/ledger/core/request.ts'
import type { PostgresStore } from '../../../../src/ledger/stores/postgres/index.ts'
import { until } from '../../../../src/testing/until.ts'
import {
  CALL,
  claimIn,
  claimOf,
  DONE,
  flush,
  freshPool,
  freshSchema,
  leaseOf,
  openStore,
  settleOf,
  sleep,
  TRANSACTION,
  testPostgres,
} from '../../../support/stores/postgres/store.ts'

/** Collects the wakes of a store, and waits for one about a record. */
async function listen(t: TestContext, store: PostgresStore) {
  const heard: (readonly string[] | null)[] = []
  const watch = store.claims.watch((ids) => heard.push(ids))
  t.after(() => watch.stop())
  await watch.ready
  const has = (id: string | null) => heard.some((ids) => (id === null ? ids === null : ids?.includes(id)))
  return {
    heard,
    watch,
    woken: (id: string | null) => until(`there is a wake for ${id ?? 'everything'}`, () => has(id)),
  }
}

const wait = (store: PostgresStore, key: string) => store.claims.apply(claimOf(key, { wait: true }), CALL)

testPostgres('a waiting caller is woken across stores, however the record changes', async (t) => {
  const schema = freshSchema()
  const [store, other] = [await openStore(t, { schema }), await openStore(t, { schema })]
  const { woken } = await listen(t, other)
  const changes: Record<string, (grant: Awaited<ReturnType<typeof claimIn>>) => Request> = {
    settled: (grant) => settleOf(grant),
    unknown: (grant) => settleOf(grant, { state: 'unknown', reason: null }),
    attached: ({ id, claimId, fence }) => ({ kind: 'attach', id, claimId, fence, pointer: { type: 'x', id: '1' } }),
    released: ({ id }) => ({ kind: 'forget', id, by: 'me', ifFence: null, onlyRunning: true }),
  }
  for (const [key, change] of Object.entries(changes)) {
    const grant = await claimIn(store, key)
    await wait(other, key)
    await store.claims.apply(change(grant), CALL)
    await woken(grant.id)
  }
  const many = await Promise.all(['a', 'b', 'c'].map((key) => claimIn(store, key)))
  await wait(other, 'b')
  await flush(
    store,
    many.map((grant) => settleOf(grant)).toSorted((a, b) => (a.id < b.id ? -1 : 1)),
    CALL,
  )
  await woken(many[1]?.id ?? '')
})

testPostgres('a transaction wakes waiting callers when it commits, and not before', async (t) => {
  const schema = freshSchema()
  const [store, other] = [await openStore(t, { schema }), await openStore(t, { schema })]
  const { woken, heard } = await listen(t, other)
  const grant = await claimIn(store, 'a')
  await wait(other, 'a')
  await store.transactions.run(async (session) => {
    await session.apply(settleOf(grant))
    // A chance for a wake that comes too early; the right one is not waited for here.
    await sleep(100)
    assert.deepEqual(heard, [])
  }, TRANSACTION)
  await woken(grant.id)
})

testPostgres('records that no caller awaits cause no wakes', async (t) => {
  const store = await openStore(t)
  const { heard, woken } = await listen(t, store)
  const grant = await claimIn(store, 'a')
  await store.claims.apply(settleOf(grant, DONE), CALL)
  // Wakes come in the order of their commits: this one would follow that of the first.
  const awaited = await claimIn(store, 'b')
  await wait(store, 'b')
  await store.claims.apply(settleOf(awaited, DONE), CALL)
  await woken(awaited.id)
  // One settle may wake twice: by itself in this process, and by the server.
  assert.deepEqual([...new Set(heard.flat())], [awaited.id])
})

testPostgres(
  'a listener that lost its connection reconnects, and reports that anything may have changed',
  async (t) => {
    const schema = freshSchema()
    const store = await openStore(t, { schema })
    const { woken } = await listen(t, store)
    const pool = await freshPool(t)
    // In this file's own database only: others on the same server rely on their listeners.
    await pool.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE datname = current_database() AND query LIKE 'LISTEN%'`,
    )
    await woken(null)
    const other = await openStore(t, { schema })
    const lease = leaseOf(await other.claims.apply(claimOf('a'), CALL))
    await wait(store, 'a')
    await other.claims.apply(settleOf(lease), CALL)
    await woken(lease.id)
  },
)

testPostgres('a watch that ended gets no more wakes', async (t) => {
  const store = await openStore(t)
  const { heard, watch } = await listen(t, store)
  const still = await listen(t, store)
  const grant = await claimIn(store, 'a')
  await wait(store, 'a')
  watch.stop()
  await store.claims.apply(settleOf(grant), CALL)
  // Both would get the wake over the one connection of their store.
  await still.woken(grant.id)
  assert.deepEqual(heard, [])
})

test('watching never rejects', { skip: false }, async () => {
  // Without a server waiting callers poll; see also the tests of a server that is away.
  const { postgresStore } = await import('../../../../src/ledger/stores/postgres/index.ts')
  const refuse = async () => {
    throw new Error('no server')
  }
  const store = postgresStore({ connect: refuse, on: () => {} })
  await store.claims.watch(() => assert.fail('nothing can have changed')).ready
  await store.stop()
})
