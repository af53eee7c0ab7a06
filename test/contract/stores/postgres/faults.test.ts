import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { AppliedWord, LedgerErrorCode } from '../../../../src/ledger/core/errors.ts'
import { isOnceError } from '../../../../src/ledger/core/errors.ts'
import type { PostgresStore } from '../../../../src/ledger/stores/postgres/index.ts'
import { applyTo } from '../../../../src/testing/apply-all.ts'
import { until } from '../../../../src/testing/until.ts'
import type { Proxy } from '../../../../tools/proxy/index.ts'
import { createProxy } from '../../../../tools/proxy/index.ts'
import {
  atEnd,
  byId,
  CALL,
  claimAll,
  claimIn,
  claimOf,
  databaseUrl,
  flush,
  freshPool,
  freshSchema,
  kindOf,
  leaseOf,
  openOf,
  openStore,
  settleOf,
  TRANSACTION,
  testPostgres,
} from '../../../support/stores/postgres/store.ts'

/** What a store does when the network or the server fails, between any two statements. */

interface Far {
  readonly schema: string
  readonly proxy: Proxy
  readonly store: PostgresStore
  /** Its connections, as its driver has noticed so far. */
  open(): number
}

/** A store whose connections lead through a network that fails on demand. */
async function farStore(t: TestContext): Promise<Far> {
  const url = await databaseUrl()
  const proxy = await createProxy({ targetPort: Number(new URL(url).port) })
  atEnd(t, () => proxy.stop())
  const schema = freshSchema()
  const pool = await freshPool(t, { connectionString: proxy.rewrite(url) })
  const open = openOf(pool)
  const store = await openStore(t, { schema }, pool)
  return { schema, proxy, store, open }
}

const saying = (text: string) => ({ when: (request: Buffer) => request.includes(text) })

function failsWith(code: LedgerErrorCode, applied: AppliedWord): (error: unknown) => boolean {
  return (error) => isOnceError(error, code) && error.applied === applied
}

testPostgres('a claim whose answer was lost is recognised as our own when it is repeated', async (t) => {
  const { proxy, store } = await farStore(t)
  await claimIn(store, 'warm')
  for (const count of [1, 20]) {
    const claims = byId(Array.from({ length: count }, (_, index) => claimOf(`${count}-${index}`)))
    proxy.dropNextResponse(saying(count === 1 ? 'onceonly_claim' : 'onceonly_claims'))
    await assert.rejects(flush(store, claims, CALL), failsWith('store_unavailable', 'maybe'))
    const { records } = await store.claims.read(
      claims.map(({ id }) => id),
      CALL,
    )
    // The server had done it; the same claim id gets the same fence, another one meets a running attempt.
    const again = (await flush(store, claims, CALL)).map(leaseOf)
    assert.deepEqual(
      again.map(({ fence }) => fence),
      records.map((record) => record?.fence),
    )
    const rivals = claims.map((claim) => ({ ...claim, claimId: 'a rival' }))
    assert.deepEqual(new Set((await flush(store, rivals, CALL)).map(kindOf)), new Set(['in_progress']))
  }
})

testPostgres('a settle whose answer was lost may be repeated', async (t) => {
  const { proxy, store } = await farStore(t)
  const settles = (await claimAll(store, ['a', 'b', 'c'])).map((grant) => settleOf(grant))
  proxy.dropNextResponse(saying('onceonly_settles'))
  await assert.rejects(flush(store, settles, CALL), failsWith('store_unavailable', 'maybe'))
  assert.deepEqual(new Set((await flush(store, settles, CALL)).map(kindOf)), new Set(['applied']))
})

testPostgres('a grant is never lost because a later part of its batch failed', async (t) => {
  const { proxy, store } = await farStore(t)
  const [old] = await claimAll(store, ['old'])
  assert.ok(old !== undefined)
  const forget = { kind: 'forget', id: old.id, by: 'me', ifFence: null, onlyRunning: false } as const
  const requests = byId([claimOf('new'), claimOf('newer'), forget])
  proxy.dropNextResponse(saying('COMMIT'))
  const answers = await flush(store, requests, CALL)
  for (const [index, answer] of answers.entries()) {
    const claimed = requests[index]?.kind === 'claim'
    assert.equal(kindOf(answer), claimed ? 'first_attempt' : 'store_unavailable')
    if ('error' in answer) assert.equal(answer.error.applied, 'maybe')
  }
})

testPostgres('a lost response to COMMIT is reported as such, and the claim id resolves it', async (t) => {
  const { proxy, store } = await farStore(t)
  const claim = claimOf('a')
  const transact = (cut: () => void) =>
    store.transactions.run(async (session) => {
      const claimed = await session.apply(claim)
      if (kindOf(claimed) === 'replay_success') return claimed.record?.claimId
      await session.apply(settleOf(leaseOf(claimed)))
      cut()
      return 'executed'
    }, TRANSACTION)
  // Lost before COMMIT was sent: nothing happened, for certain.
  await assert.rejects(
    transact(() => proxy.cut()),
    (error) => isOnceError(error, 'store_unavailable'),
  )
  assert.equal((await store.claims.read([claim.id], CALL)).records[0], null)
  // Lost after it: the outcome is unknown until the same claim is made again.
  const lost = transact(() => proxy.dropNextResponse(saying('COMMIT')))
  await assert.rejects(lost, failsWith('store_unavailable', 'maybe'))
  assert.equal(await transact(() => assert.fail('the effect ran again')), claim.claimId)
})

testPostgres('a connection that is lost while the work runs is certain to have undone it', async (t) => {
  const { proxy, store, open } = await farStore(t)
  const noticed = () => until('the lost connection is noticed', () => open() === 0)
  const work = store.transactions.run(async (session) => {
    leaseOf(await session.apply(claimOf('a')))
    proxy.cut()
    await noticed()
    await session.tx.query('SELECT 1')
  }, TRANSACTION)
  await assert.rejects(work, failsWith('store_unavailable', 'no'))
  const careless = store.transactions.run(async (session) => {
    leaseOf(await session.apply(claimOf('a')))
    proxy.cut()
    await noticed()
  }, TRANSACTION)
  await assert.rejects(careless, failsWith('store_unavailable', 'no'))
  assert.equal((await claimIn(store, 'a')).attempt, 1)
})

testPostgres('a server that stops responding makes no caller wait past the deadline', async (t) => {
  const { proxy, store } = await farStore(t)
  await claimIn(store, 'warm')
  await store.clock.now(CALL)
  proxy.pause()
  const late = { timeoutMs: 300 }
  const calls: readonly (() => Promise<unknown>)[] = [
    () => applyTo(store, claimOf('a'), late),
    () => flush(store, byId([claimOf('b'), claimOf('c')]), late),
    () => applyTo(store, claimOf('d'), late),
    () => store.claims.read([claimOf('a').id], late),
    () => store.clock.now(late),
    () => store.transactions.run((session) => session.apply(claimOf('a')), { ...TRANSACTION, ...late }),
  ]
  const startedMs = performance.now()
  // The server stays silent until all have answered, so that whatever waits for it would never end.
  const ends = await Promise.allSettled(calls.map((call) => call()))
  assert.ok(performance.now() - startedMs > 250, 'not before the deadline either')
  for (const end of ends) {
    assert.ok(end.status === 'rejected' && isOnceError(end.reason, 'store_unavailable'), String(end.status))
    assert.match(end.reason.message, /within 300 ms/)
  }
  proxy.resume()
  assert.equal((await claimIn(store, 'after')).attempt, 1)
})

testPostgres('a restart of the server needs no restart of the store', async (t) => {
  const { proxy, store, open } = await farStore(t)
  await claimIn(store, 'before')
  const heard: (readonly string[] | null)[] = []
  const watch = store.claims.watch((ids) => heard.push(ids))
  await watch.ready
  proxy.refuse()
  proxy.cut()
  await until('the lost connections are noticed', () => open() === 0)
  await assert.rejects(applyTo(store, claimOf('away'), CALL), failsWith('store_unavailable', 'no'))
  await assert.rejects(
    store.transactions.run(async () => 1, TRANSACTION),
    (error) => isOnceError(error, 'store_unavailable') && /cannot be reached.*ECONNREFUSED/.test(error.message),
  )
  await proxy.accept()
  assert.equal((await claimIn(store, 'away')).attempt, 1)
  await until('the listener is back', () => heard.length > 0)
  assert.deepEqual(heard[0], null)
  watch.stop()
})

testPostgres('a store may be made before its server is there', async (t) => {
  const { proxy, store } = await farStore(t)
  proxy.refuse()
  await assert.rejects(claimIn(store, 'a'), failsWith('store_unavailable', 'no'))
  await proxy.accept()
  assert.equal((await claimIn(store, 'a')).attempt, 1)
})

testPostgres('sessions that an administrator ends are replaced', async (t) => {
  const { schema, store, open } = await farStore(t)
  const otherPool = await freshPool(t)
  const otherOpen = openOf(otherPool)
  const other = await openStore(t, { schema }, otherPool)
  await claimIn(store, 'before')
  const pool = await freshPool(t)
  const end = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()`
  const inside = other.transactions.run(async (session) => {
    await session.apply(claimOf('inside'))
    await pool.query(end)
    await session.tx.query('SELECT 1')
  }, TRANSACTION)
  await assert.rejects(inside, failsWith('store_unavailable', 'no'))
  await until('the ended sessions are noticed', () => open() + otherOpen() === 0)
  assert.equal((await claimIn(store, 'after')).attempt, 1)
  assert.equal((await claimIn(other, 'inside')).attempt, 1)
})

testPostgres('stopping ends in time although the server is silent', async (t) => {
  const { proxy, store } = await farStore(t)
  await claimIn(store, 'warm')
  await store.claims.watch(() => undefined).ready
  proxy.pause()
  const underWay = applyTo(store, claimOf('a'), { timeoutMs: 300 }).catch(() => 'failed')
  // The server stays silent until after the stop, so that whatever waits for it would never end.
  await store.stop()
  assert.equal(await underWay, 'failed')
  proxy.resume()
})
