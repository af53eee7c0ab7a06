import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import type { TestContext } from 'node:test'
import { test } from 'node:test'
import { until } from '../../../testing/until.ts'
import { isOnceError } from '../../core/errors.ts'
import type { ClaimRequest } from '../../core/request.ts'
import type { Applied } from '../../store/port.ts'
import { stateCode } from '../../store/row.ts'
import type { SqliteStore } from './index.ts'
import { CALL, claimIn, claimOf, freshPath, freshStore, leaseOf, openStore, settleOf } from './test-store.ts'

/** A new turn of the event loop: the next write of a single caller is committed before the call returns. */
async function nextTurn(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => void setImmediate(resolve))
}

/** The lease of a claim that was answered before the call returned. */
async function claimAlone(store: SqliteStore, key: string, fields: Partial<ClaimRequest> = {}) {
  await nextTurn()
  const applied = store.claims.apply(claimOf(key, fields), CALL)
  assert.ok(!(applied instanceof Promise))
  return leaseOf(applied as Applied<ClaimRequest>)
}

test('claim and settle of a single caller are decided and committed before the call returns', async (t) => {
  const path = freshPath(t)
  const store = openStore(t, path)
  await claimIn(store, 'first')
  const lease = await claimAlone(store, 'a')
  const settled = store.claims.apply(settleOf(lease), CALL)
  assert.ok(!(settled instanceof Promise))
  assert.equal(settled.decision.kind, 'applied')
  assert.deepEqual(committed(t, path, 'a'), { state: stateCode.succeeded, fence: lease.fence })
  const again = await store.claims.apply(claimOf('a'), CALL)
  assert.equal(again.decision.kind, 'replay_success')
})

test('a settle alone is decided by the clock of the file, also when another process has moved it', async (t) => {
  const path = freshPath(t)
  const store = openStore(t, path)
  await claimIn(store, 'first')
  const lease = await claimAlone(store, 'a')
  const HOUR = 3_600_000
  await openStore(t, path).clock.advance(HOUR, CALL)
  await nextTurn()
  const { record } = await store.claims.apply(settleOf(lease), CALL)
  assert.ok(record?.state === 'succeeded' && record.settledAt >= lease.claimedAt + HOUR)
})

test('a settle alone that finds its record changed is decided as any other', async (t) => {
  const path = freshPath(t)
  const store = openStore(t, path)
  await claimIn(store, 'first')
  const lease = await claimAlone(store, 'a')
  const forget = { kind: 'forget', id: lease.id, by: 'me', ifFence: null, onlyRunning: false } as const
  const other = openStore(t, path)
  await other.claims.apply(forget, CALL)
  await claimIn(other, 'a')
  await nextTurn()
  const { decision } = await store.claims.apply(settleOf(lease), CALL)
  assert.equal(decision.kind, 'lease_lost')
})

/** What other connections see of a record: what is committed. */
function committed(t: TestContext, path: string, key: string): unknown {
  const other = new DatabaseSync(path, { readOnly: true })
  t.after(() => other.close())
  return { ...other.prepare('SELECT state, fence FROM onceonly_records WHERE key = ?').get(key) }
}

test('a settle alone wakes a caller that waits in another process', async (t) => {
  const path = freshPath(t)
  const [store, other] = [openStore(t, path), openStore(t, path)]
  await claimIn(store, 'first')
  const lease = await claimAlone(store, 'a')
  await other.claims.apply(claimOf('a', { wait: true }), CALL)
  let wakes = 0
  const watch = other.claims.watch(() => void wakes++)
  await watch.ready
  await nextTurn()
  assert.ok(!(store.claims.apply(settleOf(lease), CALL) instanceof Promise))
  await until('the other process is woken', () => wakes > 0)
  watch.stop()
})

test('a value that SQLite cannot hold is refused alone, and nothing is left open', async (t) => {
  const path = freshPath(t)
  const store = openStore(t, path)
  await claimIn(store, 'first')
  const lease = await claimAlone(store, 'a')
  const bad = { state: 'succeeded', outcome: { kept: 'response', data: 'nul \0 inside' } } as const
  await nextTurn()
  await assert.rejects(
    async () => await store.claims.apply(settleOf(lease, bad), CALL),
    (error) => isOnceError(error, 'row_refused'),
  )
  await nextTurn()
  const { decision } = await store.claims.apply(settleOf(lease), CALL)
  assert.equal(decision.kind, 'applied')
  assert.deepEqual(committed(t, path, 'a'), { state: stateCode.succeeded, fence: lease.fence })
})

test('a settle alone that the disk refused may have been applied, and is left to the caller to repeat', async (t) => {
  const store = freshStore(t)
  await claimIn(store, 'first')
  const lease = await claimAlone(store, 'a')
  await nextTurn()
  await store.sql.query('PRAGMA max_page_count = 30')
  const large = { state: 'succeeded', outcome: { kept: 'response', data: `"${'x'.repeat(500_000)}"` } } as const
  await nextTurn()
  await assert.rejects(
    async () => await store.claims.apply(settleOf(lease, large), CALL),
    (error) => isOnceError(error, 'store_unavailable') && error.applied === 'maybe',
  )
  await nextTurn()
  const { decision } = await store.claims.apply(settleOf(lease, large), CALL)
  assert.equal(decision.kind, 'applied')
})

test('a lock of another process is waited for', async (t) => {
  const path = freshPath(t)
  const store = openStore(t, path)
  await claimIn(store, 'first')
  const lease = await claimAlone(store, 'a')
  const other = new DatabaseSync(path)
  t.after(() => other.close())
  other.exec('BEGIN IMMEDIATE')
  await nextTurn()
  const claimed = store.claims.apply(claimOf('b'), CALL)
  assert.ok(claimed instanceof Promise)
  const settled = store.claims.apply(settleOf(lease), CALL)
  await nextTurn()
  other.exec('COMMIT')
  assert.equal((await claimed).decision.kind, 'first_attempt')
  assert.equal((await settled).decision.kind, 'applied')
})
