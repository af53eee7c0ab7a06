import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TestRuntime } from '../runtime/test-runtime.ts'
import { createTestRuntime } from '../runtime/test-runtime.ts'
import { isOnceError, OnceError } from './core/errors.ts'
import { limits, SECOND } from './core/limits.ts'
import type { LedgerRecord } from './core/record.ts'
import type { Change, Joiners } from './join.ts'
import { createJoiners } from './join.ts'
import type { Claims, Wake } from './store/port.ts'

const ID = 'r'

function recordIn(state: 'in_progress' | 'succeeded', leaseUntil = 1e9): LedgerRecord {
  return { state, leaseUntil, pointer: null, id: ID } as unknown as LedgerRecord
}

/** A store with one record, whose notifications come by hand. */
function scene(options: { readonly ready?: Promise<void> } = {}) {
  const runtime = createTestRuntime()
  const seen = { reads: [] as number[], watches: 0, stops: 0, dropped: 0 }
  const wakes = new Set<Wake>()
  const store = {
    record: recordIn('in_progress') as LedgerRecord | null,
    fault: null as OnceError | null,
    /** Set: reads wait for it. */
    held: null as Promise<void> | null,
  }
  const claims: Claims = {
    apply: () => assert.fail('not called'),
    async read() {
      seen.reads.push(runtime.monotonicMs() - startedMs)
      const { record, fault } = store
      if (store.held !== null) await store.held
      if (fault !== null) throw fault
      return { now: runtime.monotonicMs(), records: [record] }
    },
    watch(wake) {
      seen.watches++
      wakes.add(wake)
      const stop = () => {
        seen.stops++
        wakes.delete(wake)
      }
      return { ready: options.ready ?? Promise.resolve(), stop }
    },
  }
  const startedMs = runtime.monotonicMs()
  const joiners = createJoiners(claims, runtime, () => void seen.dropped++)
  const wake = (ids: readonly string[] | null) => {
    for (const each of wakes) each(ids)
  }
  return { runtime, joiners, store, seen, wake, wait: (ms: number) => waiting(joiners, runtime, ms) }
}

interface Seen {
  change: Change | null | undefined
  error: unknown
}

const isWaiting = ({ change, error }: Seen) => change === undefined && error === undefined

function waiting(joiners: Joiners, runtime: TestRuntime, ms: number): Seen {
  const seen: Seen = { change: undefined, error: undefined }
  joiners.settled(ID, runtime.monotonicMs() + ms).then(
    (change) => void (seen.change = change),
    (error: unknown) => void (seen.error = error),
  )
  return seen
}

test('a waiter without notifications polls ever less often, and once more at the deadline', async () => {
  const { runtime, seen, wait } = scene()
  const waited = wait(3_000)
  await runtime.advance(3_000)
  assert.deepEqual(seen.reads, [0, 50, 150, 350, 750, 1_550, 2_550, 3_000])
  assert.equal(waited.change, null)
  assert.equal(runtime.pending().foreground, 0)
})

test('a notification is answered by a look at once', async () => {
  const { runtime, store, seen, wake, wait } = scene()
  const waited = wait(10 * SECOND)
  await runtime.advance(2_000)
  store.record = recordIn('succeeded')
  wake(['another'])
  await runtime.settle()
  assert.ok(isWaiting(waited))
  wake([ID])
  await runtime.settle()
  assert.equal(waited.change?.record?.state, 'succeeded')
  assert.equal(seen.reads.at(-1), 2_000)
  assert.equal(seen.dropped, 2)
  assert.equal(runtime.pending().foreground, 0)
})

test('"anything may have changed" wakes every waiter', async () => {
  const { runtime, store, wake, wait } = scene()
  const waited = wait(10 * SECOND)
  await runtime.advance(2_000)
  store.record = null
  wake(null)
  await runtime.settle()
  assert.deepEqual(waited.change?.record, null)
})

test('a wake that comes during a look leads to another one', async () => {
  const { runtime, store, wake, wait } = scene()
  const waited = wait(10 * SECOND)
  await runtime.advance(1_600)
  const read = Promise.withResolvers<void>()
  store.held = read.promise
  await runtime.advance(1_000)
  // The look under way has read the old state already.
  store.record = recordIn('succeeded')
  wake([ID])
  store.held = null
  read.resolve()
  await runtime.settle()
  assert.equal(waited.change?.record?.state, 'succeeded')
})

test('a waiter that leaves late takes no notification of another', async () => {
  const { runtime, store, wake, wait } = scene()
  const stays = wait(10 * SECOND)
  await runtime.advance(1_600)
  // Its nap is over long before its look comes back, and then it is over.
  const read = Promise.withResolvers<void>()
  store.held = read.promise
  const leaves = wait(0)
  await runtime.settle()
  store.held = null
  await runtime.advance(1_000)
  read.resolve()
  await runtime.settle()
  assert.equal(leaves.change, null)
  store.record = recordIn('succeeded')
  wake([ID])
  await runtime.settle()
  assert.equal(stays.change?.record?.state, 'succeeded')
})

test('a lapsed lease is a change', async () => {
  const { runtime, store, wait } = scene()
  store.record = recordIn('in_progress', runtime.monotonicMs() + 100)
  const waited = wait(20 * SECOND)
  await runtime.advance(100 + limits.leaseGraceMs - 1)
  assert.ok(isWaiting(waited))
  await runtime.advance(1_001)
  assert.equal(waited.change?.record?.state, 'in_progress')
})

test('a store that is away for a moment rejects no waiter', async () => {
  const { runtime, store, wait } = scene()
  store.fault = new OnceError('store_unavailable', 'Away.')
  const waited = wait(10 * SECOND)
  await runtime.advance(4_000)
  assert.deepEqual([waited.change, waited.error], [undefined, undefined])
  store.fault = null
  store.record = recordIn('succeeded')
  await runtime.advance(1_000)
  assert.equal(waited.change?.record?.state, 'succeeded')
  // Nothing keeps the process alive for a wait that is over.
  assert.equal(runtime.pending().foreground, 0)
})

test('an outage is reported at the deadline, a stop at once', async () => {
  const { runtime, store, wait } = scene()
  store.fault = new OnceError('store_unavailable', 'Away.')
  const waited = wait(2_000)
  await runtime.advance(1_999)
  assert.equal(waited.error, undefined)
  await runtime.advance(1)
  assert.ok(isOnceError(waited.error, 'store_unavailable'))
  store.fault = new OnceError('stopped', 'Over.')
  const late = wait(2_000)
  await runtime.settle()
  assert.ok(isOnceError(late.error, 'stopped'))
  assert.equal(runtime.pending().foreground, 0)
})

test('a store that cannot notify yet is polled, and looked at once more when it can', async () => {
  const { promise: ready, resolve } = Promise.withResolvers<void>()
  const { runtime, seen, store, wait } = scene({ ready })
  const waited = wait(10 * SECOND)
  await runtime.advance(1_700)
  assert.deepEqual(seen.reads, [50, 100, 200, 400, 800, 1_600])
  store.record = recordIn('succeeded')
  resolve()
  await runtime.settle()
  assert.equal(waited.change?.record?.state, 'succeeded')
})

test('the watch is kept for a while, and then given up', async () => {
  const { runtime, store, seen, wait } = scene()
  store.record = recordIn('succeeded')
  wait(1_000)
  await runtime.advance(5_000)
  wait(1_000)
  await runtime.advance(9_000)
  assert.deepEqual([seen.watches, seen.stops], [1, 0])
  await runtime.advance(1_000)
  assert.deepEqual([seen.watches, seen.stops], [1, 1])
  wait(1_000)
  await runtime.settle()
  assert.equal(seen.watches, 2)
})

test('too many waiters are refused, with a time to retry after', async () => {
  const { joiners } = scene()
  const over = Promise.withResolvers<void>()
  const all = Array.from({ length: limits.waiters }, () => joiners.counted(() => over.promise))
  await assert.rejects(
    joiners.counted(async () => {}),
    (error) => isOnceError(error, 'too_many_waiters') && error.retryAfterMs === SECOND,
  )
  over.resolve()
  await Promise.all(all)
  assert.equal(await joiners.counted(async () => 'in'), 'in')
})
