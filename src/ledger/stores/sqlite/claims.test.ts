import assert from 'node:assert/strict'
import { test } from 'node:test'
import { applyAll, applyTo } from '../../../testing/apply-all.ts'
import { isOnceError } from '../../core/errors.ts'
import { FOREVER } from '../../core/limits.ts'
import type { Applied } from '../../store/port.ts'
import {
  CALL,
  claimIn,
  claimOf,
  DONE,
  freshPath,
  freshStore,
  leaseOf,
  openStore,
  POLICY,
  settleOf,
} from './test-store.ts'

function kindOf(applied: Applied | undefined): string {
  return applied === undefined || 'error' in applied ? (applied?.error.code ?? 'nothing') : applied.decision.kind
}

test('a claim is granted once, settled, and replayed', async (t) => {
  const store = freshStore(t)
  const lease = await claimIn(store, 'a')
  assert.equal(kindOf(await store.claims.apply(claimOf('a'), CALL)), 'in_progress')
  assert.equal(kindOf(await store.claims.apply(settleOf(lease), CALL)), 'applied')
  const again = await store.claims.apply(claimOf('a'), CALL)
  assert.ok(again !== undefined && 'decision' in again && again.decision.kind === 'replay_success')
  assert.equal(again.decision.outcome.data, '"done"')
})

test('a row that cannot be stored fails alone, and the others of its batch commit', async (t) => {
  const store = freshStore(t)
  const grants = await Promise.all(['a', 'b', 'c', 'd', 'e'].map((key) => claimIn(store, key)))
  const bad = ['"\ud800"', 'nul \0 inside'].map(
    (data) => ({ state: 'succeeded', outcome: { kept: 'response', data } }) as const,
  )
  const answers = await applyAll(
    store,
    grants.map((grant, index) => settleOf(grant, index % 2 === 0 ? DONE : bad[index >> 1])),
    CALL,
  )
  assert.deepEqual(answers.map(kindOf), ['applied', 'row_refused', 'applied', 'row_refused', 'applied'])
  const { records } = await store.claims.read(
    grants.map(({ id }) => id),
    CALL,
  )
  assert.deepEqual(
    records.map((record) => record?.state),
    ['succeeded', 'in_progress', 'succeeded', 'in_progress', 'succeeded'],
  )
})

test('what is no value at all is refused alone, too', async (t) => {
  const store = freshStore(t)
  const nonsense = [
    claimOf('a', { leaseMs: Number.NaN }),
    claimOf('b', { claimId: undefined as unknown as string }),
    claimOf('c', { claimId: {} as unknown as string }),
    claimOf('d', { id: 'zz' }),
    claimOf('e', { policy: undefined as unknown as typeof POLICY }),
  ]
  const answers = await applyAll(store, [claimOf('good'), ...nonsense], CALL)
  assert.deepEqual(answers.map(kindOf), ['first_attempt', ...nonsense.map(() => 'row_refused')])
})

test('an outcome of a megabyte comes back as it was', async (t) => {
  const store = freshStore(t)
  const data = JSON.stringify('ü'.repeat(1_000_000))
  const lease = await claimIn(store, 'large')
  await store.claims.apply(settleOf(lease, { state: 'succeeded', outcome: { kept: 'response', data } }), CALL)
  const { records } = await store.claims.read([lease.id], CALL)
  assert.ok(records[0]?.state === 'succeeded' && records[0].outcome.data === data)
})

test('a record that is kept forever can be read again', async (t) => {
  const store = freshStore(t)
  const lease = await claimIn(store, 'forever', { policy: { ...POLICY, retainMs: FOREVER, refuseMs: FOREVER } })
  await store.claims.apply(settleOf(lease), CALL)
  const again = await store.claims.apply(claimOf('forever'), CALL)
  assert.equal(kindOf(again), 'replay_success')
})

test('fences grow across reopening, sweeping and forgetting', async (t) => {
  const path = freshPath(t)
  const seen: number[] = []
  for (let life = 0; life < 3; life++) {
    const store = openStore(t, path)
    seen.push((await claimIn(store, `life ${life}`)).fence)
    const { fence, id } = await claimIn(store, 'forgotten')
    seen.push(fence)
    await store.claims.apply({ kind: 'forget', id, by: 'me', ifFence: null, onlyRunning: false }, CALL)
    await store.clock.advance(7 * 24 * 3_600_000, CALL)
    await store.upkeep.sweep(null, 100, CALL)
    await store.stop()
  }
  assert.deepEqual(
    seen,
    seen.toSorted((a, b) => a - b),
  )
  assert.equal(new Set(seen).size, seen.length)
})

test('not even deleting the newest records by hand makes a fence come back', async (t) => {
  const path = freshPath(t)
  const store = openStore(t, path)
  const { fence } = await claimIn(store, 'a')
  await store.sql.query('DELETE FROM onceonly_records')
  await store.stop()
  assert.ok((await claimIn(openStore(t, path), 'b')).fence > fence)
})

test('a settle of a lost record writes it again, and later fences stay above it', async (t) => {
  const store = freshStore(t)
  const lease = { ...(await claimIn(store, 'a')), fence: 5_000, incarnation: 5_000 }
  const lost = { ...lease, id: claimOf('b').id, identity: claimOf('b').identity }
  const applied = await store.claims.apply(settleOf(lost), CALL)
  assert.ok(applied !== undefined && 'decision' in applied)
  assert.deepEqual(applied.decision, { kind: 'applied', recordLost: true })
  assert.ok((await claimIn(store, 'c')).fence > 5_000)
})

test('a claim over an expired record starts a new incarnation and new counts', async (t) => {
  const store = freshStore(t)
  const first = await claimIn(store, 'a')
  await store.claims.apply(settleOf(first), CALL)
  await store.upkeep.tally(
    { records: [{ id: first.id, replays: 3, conflicts: 1, inProgress: 2, lastAgoMs: 5 }], callers: [] },
    CALL,
  )
  assert.equal((await store.queries.get(first.id, CALL)).view?.replays, 3)
  await store.clock.advance(POLICY.retainMs, CALL)
  assert.equal((await store.queries.get(first.id, CALL)).view, null)
  const second = leaseOf(await store.claims.apply(claimOf('a'), CALL))
  assert.ok(second.incarnation > first.incarnation)
  assert.equal((await store.queries.get(first.id, CALL)).view?.replays, 0)
})

test('after stop every call is refused as stopped, and stopping twice is one stop', async (t) => {
  const store = freshStore(t)
  await claimIn(store, 'a')
  await Promise.all([store.stop(), store.stop()])
  const stopped = (error: unknown) => isOnceError(error, 'stopped')
  await assert.rejects(applyTo(store, claimOf('b'), CALL), stopped)
  await assert.rejects(store.claims.read([], CALL), stopped)
  await assert.rejects(store.clock.now(CALL), stopped)
  await assert.rejects(store.sql.query('SELECT 1'), stopped)
  await assert.rejects(store.queries.count({}, CALL), stopped)
})

test('stop waits for what is under way', async (t) => {
  const store = freshStore(t)
  const claimed = applyTo(store, claimOf('a'), CALL)
  const both = [applyTo(store, claimOf('b'), CALL), claimed]
  await store.stop()
  assert.deepEqual((await Promise.all(both)).flat().map(kindOf), ['first_attempt', 'first_attempt'])
})

test('a path that cannot be shared by connections is refused, and one that does not exist is named', async (t) => {
  for (const path of ['', ' ', ':memory:', 'file:x?mode=memory']) {
    assert.throws(
      () => openStore(t, path),
      (error) => isOnceError(error, 'bad_option'),
    )
  }
  const store = openStore(t, '/nowhere/at/all/records.db')
  await assert.rejects(
    applyTo(store, claimOf('a'), CALL),
    (error) =>
      isOnceError(error, 'store_unavailable') && error.message.includes('/nowhere/at/all') && error.applied === 'no',
  )
})
