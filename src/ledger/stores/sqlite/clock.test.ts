import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isOnceError } from '../../core/errors.ts'
import { limits, MINUTE } from '../../core/limits.ts'
import type { TimeSource } from './clock.ts'
import { CALL, claimIn, claimOf, freshPath, openStore, settleOf } from './test-store.ts'

const START = 1_700_000_000_000

/** A machine whose clocks are set by hand. */
function machine(bootId: string, monotonicMs = 1_000, wallMs = START) {
  const clocks = { bootId, monotonicMs, wallMs }
  const time: TimeSource = {
    bootId: () => clocks.bootId,
    monotonicMs: () => clocks.monotonicMs,
    wallMs: () => clocks.wallMs,
  }
  return { clocks, internal: { time } }
}

test('time passes with the monotonic clock, and a jump of the wall clock changes nothing', async (t) => {
  const { clocks, internal } = machine('one')
  const path = freshPath(t)
  const store = openStore(t, path, { internal })
  assert.equal(await store.clock.now(CALL), START)
  clocks.monotonicMs += 1_500.7
  clocks.wallMs += 365 * 24 * 60 * MINUTE
  assert.equal(await store.clock.now(CALL), START + 1_500)
  // A second process of the same boot reads the same anchor.
  assert.equal(await openStore(t, path, { internal }).clock.now(CALL), START + 1_500)
  clocks.wallMs = 0
  const lease = await claimIn(store, 'a', { leaseMs: 2_000 })
  assert.equal(lease.claimedAt, START + 1_500)
})

test('a new boot anchors again, and the leases that were granted before it have lapsed', async (t) => {
  const path = freshPath(t)
  const before = openStore(t, path, { internal: machine('one', 50_000).internal })
  const lease = await claimIn(before, 'a', { leaseMs: 10 * MINUTE })
  await before.stop()
  const { clocks, internal } = machine('two', 10, START + 5_000)
  const store = openStore(t, path, { internal })
  assert.equal(await store.clock.now(CALL), START + 5_000)
  const { rows, next } = await store.queries.lapsed(0, 10, CALL)
  assert.deepEqual(
    rows.map(({ id }) => id),
    [lease.id],
  )
  assert.equal(next, lease.fence)
  const twin = await store.claims.apply(claimOf('a'), CALL)
  assert.ok(twin !== undefined && 'decision' in twin && twin.decision.kind === 'outcome_unknown')
  // A lease of this boot lives, and its late settle under the old fence still counts for the other.
  const young = await claimIn(store, 'b', { leaseMs: 2_000 })
  clocks.monotonicMs += 2_000 + limits.leaseGraceMs - 1
  assert.deepEqual((await store.queries.lapsed(0, 10, CALL)).rows, [])
  const late = await store.claims.apply(settleOf(lease), CALL)
  assert.ok(late !== undefined && 'decision' in late && late.decision.kind === 'applied')
  clocks.monotonicMs += 1
  assert.deepEqual(
    (await store.queries.lapsed(0, 10, CALL)).rows.map(({ id }) => id),
    [young.id],
  )
})

test('a boot with a wall clock in the past never goes behind a time that the store has returned', async (t) => {
  const path = freshPath(t)
  const { clocks, internal } = machine('one')
  const before = openStore(t, path, { internal })
  await before.clock.now(CALL)
  clocks.monotonicMs += 60 * MINUTE
  const { claimedAt } = await claimIn(before, 'a')
  await before.stop()
  const store = openStore(t, path, { internal: machine('two', 5, 0).internal })
  assert.ok((await store.clock.now(CALL)) >= claimedAt)
})

test('where a boot has no id, a monotonic clock that went back means a new one', async (t) => {
  const path = freshPath(t)
  const before = openStore(t, path, { internal: machine('unnamed', 90_000).internal })
  await claimIn(before, 'a', { leaseMs: 10 * MINUTE })
  await before.stop()
  const store = openStore(t, path, { internal: machine('unnamed', 100, START + 1).internal })
  assert.equal(await store.clock.now(CALL), START + 1)
  assert.equal((await store.queries.lapsed(0, 10, CALL)).rows.length, 1)
})

test('a second machine that takes the file over is noticed by the first', async (t) => {
  const path = freshPath(t)
  const first = openStore(t, path, { internal: machine('one').internal })
  await claimIn(first, 'a')
  await claimIn(openStore(t, path, { internal: machine('two').internal }), 'b')
  await assert.rejects(
    claimIn(first, 'c'),
    (error) => isOnceError(error, 'store_unavailable') && error.applied === 'no',
  )
})

test('the test offset lives in the store, and moving it needs the test clock', async (t) => {
  const path = freshPath(t)
  const { internal } = machine('one')
  const store = openStore(t, path, { internal })
  const plain = openStore(t, path, { internal, testClock: false })
  await store.clock.advance(1_234, CALL)
  assert.equal(await plain.clock.now(CALL), START + 1_234)
  assert.equal((await claimIn(plain, 'a')).claimedAt, START + 1_234)
  const refused = (error: unknown) => isOnceError(error, 'bad_option')
  await assert.rejects(plain.clock.advance(1, CALL), refused)
  await assert.rejects(store.clock.advance(-1, CALL), refused)
  await assert.rejects(store.clock.advance(0.5, CALL), refused)
  assert.equal(await store.clock.now(CALL), START + 1_234)
})
