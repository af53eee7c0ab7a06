import assert from 'node:assert/strict'
import { test } from 'node:test'
import { applyAll } from '../../../testing/apply-all.ts'
import { until } from '../../../testing/until.ts'
import type { RecordId } from '../../core/identity.ts'
import type { SqliteStore } from './index.ts'
import {
  CALL,
  claimIn,
  claimOf,
  freshPath,
  freshStore,
  leaseOf,
  openStore,
  settleOf,
  sleep,
  TRANSACTION,
} from './test-store.ts'

async function heard(store: SqliteStore) {
  const wakes: (readonly RecordId[] | null)[] = []
  const watch = store.claims.watch((ids) => wakes.push(ids))
  await watch.ready
  return { wakes, watch }
}

/** Until there was a wake, and a moment longer for one too many. */
async function untilWoken(wakes: readonly unknown[]): Promise<void> {
  await until('there is a wake', () => wakes.length > 0)
  await sleep(60)
}

test('a settle wakes the callers that wait for its record, and only if there are any', async (t) => {
  const store = freshStore(t)
  const { wakes, watch } = await heard(store)
  const lonely = await claimIn(store, 'lonely')
  const awaited = await claimIn(store, 'awaited')
  await store.claims.apply(claimOf('awaited', { wait: true }), CALL)
  await applyAll(
    store,
    [settleOf(lonely), settleOf(awaited)].toSorted((a, b) => (a.id < b.id ? -1 : 1)),
    CALL,
  )
  assert.deepEqual(wakes, [[awaited.id]])
  // Commits of this process are known already: reading the file brings nothing new.
  await sleep(60)
  assert.deepEqual(wakes, [[awaited.id]])
  watch.stop()
})

test('a transaction wakes at its commit, not before, and not when it is rolled back', async (t) => {
  const store = freshStore(t)
  const { wakes, watch } = await heard(store)
  const { id } = await claimIn(store, 'awaited')
  const twin = await store.claims.apply(claimOf('awaited', { wait: true }), CALL)
  assert.ok(twin !== undefined && 'decision' in twin)
  const forget = { kind: 'forget', id, by: 'me', ifFence: null, onlyRunning: false } as const
  const failing = store.transactions.run(async ({ apply }) => {
    await apply(forget)
    throw new Error('no')
  }, TRANSACTION)
  await assert.rejects(failing)
  // Pauses of these tests give a chance to wakes that must not come; none of them is waited for.
  await sleep(30)
  assert.deepEqual(wakes, [])
  await store.transactions.run(async ({ apply }) => {
    await apply(forget)
    await sleep(30)
    assert.deepEqual(wakes, [])
  }, TRANSACTION)
  await untilWoken(wakes)
  assert.deepEqual(wakes, [[id]])
  watch.stop()
})

test('a stopped watch gets no wakes, and a new one gets only new ones', async (t) => {
  const path = freshPath(t)
  const store = openStore(t, path)
  const other = openStore(t, path)
  const first = await heard(store)
  first.watch.stop()
  const settleAwaited = async (key: string) => {
    const lease = leaseOf(await other.claims.apply(claimOf(key), CALL))
    await other.claims.apply(claimOf(key, { wait: true }), CALL)
    await other.claims.apply(settleOf(lease), CALL)
  }
  await settleAwaited('before')
  const second = await heard(store)
  await sleep(40)
  assert.deepEqual([first.wakes, second.wakes], [[], []])
  await settleAwaited('after')
  // Whichever looks first: the poll, or our own next commit.
  await claimIn(store, 'own commit')
  await untilWoken(second.wakes)
  assert.deepEqual([first.wakes, second.wakes], [[], [null]])
  second.watch.stop()
})

test('a listener hears every commit of another process, and of its own process those that wake its topic', async (t) => {
  const path = freshPath(t)
  const store = openStore(t, path)
  const other = openStore(t, path)
  await store.sql.migrate('listening', [{ version: 1, oldestCode: 1, up: () => ['create table marks (n integer)'] }])
  const heard = { topic: 0, change: 0 }
  const watch = store.sql.listen('due', (cause) => (heard[cause] += 1))
  await watch.ready
  const mark = (wake: string) => store.sql.query(`insert into marks (n) values (1) returning ${wake} as woken`)
  await claimIn(store, 'own commit')
  await mark(store.sql.wake('other'))
  await sleep(60)
  assert.equal(heard.topic, 0)
  await mark(store.sql.wake('due'))
  assert.equal(heard.topic, 1)
  const before = heard.change
  await claimIn(other, 'foreign commit')
  await until('the commit of the other process is heard', () => heard.change > before)
  watch.stop()
})

test('a topic that was woken in a transaction is heard at its commit alone', async (t) => {
  const store = freshStore(t)
  await store.sql.migrate('listening', [{ version: 1, oldestCode: 1, up: () => ['create table marks (n integer)'] }])
  let heard = 0
  const watch = store.sql.listen('due', (cause) => void (heard += cause === 'topic' ? 1 : 0))
  await watch.ready
  const mark = `insert into marks (n) values (1) returning ${store.sql.wake('due')} as woken`
  const failing = store.transactions.run(async ({ tx }) => {
    await tx.query(mark, [])
    throw new Error('no')
  }, TRANSACTION)
  await assert.rejects(failing, /^Error: no$/)
  await store.sql.query('insert into marks (n) values (2)')
  assert.equal(heard, 0)
  await store.transactions.run(async ({ tx }) => {
    await tx.query(mark, [])
    assert.equal(heard, 0)
  }, TRANSACTION)
  assert.equal(heard, 1)
  watch.stop()
})

test('watching a store that cannot be opened is ready all the same', async (t) => {
  const store = openStore(t, '/nowhere/at/all/records.db')
  const watch = store.claims.watch(() => undefined)
  await watch.ready
  watch.stop()
})
