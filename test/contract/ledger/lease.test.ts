import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { EffectContext, Runtime } from 'onceonly'
import { failed, isOnceError, SECOND, succeeded } from 'onceonly'
import { createRuntime } from '../../../src/runtime/runtime.ts'
import { until } from '../../../src/testing/until.ts'
import { createHeld, kinds, onEveryStore, who } from '../../support/ledger/worlds.ts'

const LAPSE_MS = 36 * SECOND
const never = () => assert.fail('the effect ran again')

/** A process whose monotonic clock can be moved: as if it had been paused. */
function pausable(): { runtime: Runtime; pause(ms: number): void } {
  const real = createRuntime()
  let pausedMs = 0
  return {
    runtime: { ...real, monotonicMs: () => real.monotonicMs() + pausedMs },
    pause: (ms) => void (pausedMs += ms),
  }
}

onEveryStore('heartbeats keep a long effect alive past its lease', async ({ once, second, events }) => {
  const leaseMs = 2_000
  const define = { name: 'long', effect: 'external', leaseMs, whileRunning: { waitMs: 60_000 } } as const
  const here = once.operation(define)
  const there = (await second()).operation(define)
  const begun = Promise.withResolvers<void>()
  const slow = async (attempt: EffectContext) => {
    begun.resolve()
    await new Promise((resolve) => setTimeout(resolve, 2 * leaseMs + 100))
    return attempt.effectKey
  }
  const first = here.run(who('k'), 1, slow)
  await begun.promise
  const twin = await there.execute(who('k'), 1, never)
  assert.deepEqual(twin, { kind: 'joined', value: await first })
  assert.equal(kinds(events).includes('lease_over'), false)
})

onEveryStore(
  'a paused holder can start nothing, and its late settle changes nothing',
  async ({ world, once, second, events }) => {
    const { runtime, pause } = pausable()
    const define = { name: 'paused', effect: 'repeatable' } as const
    const zombie = (await second({ runtime })).operation(define)
    const op = once.operation(define)
    const woken = Promise.withResolvers<void>()
    const begun = Promise.withResolvers<void>()
    let fences: number[] = []
    const late = zombie.execute(who('k'), 1, async (attempt) => {
      fences.push(attempt.fence)
      begun.resolve()
      await woken.promise
      assert.ok(attempt.signal.aborted, 'the signal has fired, before any timer')
      assert.throws(
        () => attempt.derive('mail'),
        (error) => isOnceError(error, 'lease_over'),
      )
      await assert.rejects(attempt.attach({ type: 'a', id: 'b' }), (error) => isOnceError(error, 'lease_over'))
      assert.equal(attempt.signal.aborted, true)
      return 'late'
    })
    await begun.promise
    pause(LAPSE_MS)
    await world.advance(LAPSE_MS)
    assert.equal(
      await op.run(who('k'), 1, (attempt) => {
        fences.push(attempt.fence)
        return 'winner'
      }),
      'winner',
    )
    woken.resolve()
    const answer = await late
    assert.ok(answer.kind === 'refused' && answer.error.code === 'lease_lost')
    const [first = 0, second2 = 0] = fences
    assert.ok(second2 > first)
    const view = await once.get({ ...who('k'), operation: 'paused' })
    assert.ok(view?.record.state === 'succeeded' && view.record.outcome.data === '"winner"')
    assert.ok(view.record.history.some((entry) => entry.what === 'superseded' && entry.note === 'succeeded'))
    assert.ok(kinds(events).includes('late_outcome_conflict'))
  },
)

onEveryStore(
  'a settle under the current fence counts even after the lease lapsed, and resolves the unknown',
  async ({ world, once }) => {
    const op = once.operation({ name: 'late', effect: 'external' })
    const claimed = await op.claim(who('k'), 1)
    assert.ok(claimed.kind === 'first_attempt')
    await world.advance(LAPSE_MS)
    await once.upkeep.reconcile()
    assert.equal((await once.get({ ...who('k'), operation: 'late' }))?.record.state, 'unknown')
    await claimed.lease.settle(succeeded('late but true'))
    await claimed.lease.settle(succeeded('late but true'))
    assert.deepEqual(await op.execute(who('k'), 1, never), { kind: 'replayed', value: 'late but true' })
  },
)

onEveryStore('effect keys are equal for every attempt, and new after forget', async ({ world, once }) => {
  const op = once.operation({ name: 'keys', effect: 'repeatable' })
  const keys: string[] = []
  const note = (attempt: EffectContext) => void keys.push(`${attempt.effectKey}/${attempt.derive('mail')}`)
  const identity = { ...who('k'), operation: 'keys' }
  await assert.rejects(
    op.run(who('k'), 1, (attempt) => {
      note(attempt)
      throw new Error('again')
    }),
  )
  await op.run(who('k'), 1, note)
  assert.equal(new Set(keys).size, 1)
  const before = await once.get(identity)
  await once.forget(identity, { by: 'ann' })
  assert.equal(await once.get(identity), null)
  await op.run(who('k'), 1, note)
  assert.equal(new Set(keys).size, 2)
  const after = await once.get(identity)
  assert.ok((after?.record.fence ?? 0) > (before?.record.fence ?? 0))
  await world.advance(0)
})

onEveryStore('a pointer is attached at once, durable, and visible to waiting callers', async ({ once, second }) => {
  const define = { name: 'attach', effect: 'external', whileRunning: 'conflict' } as const
  const op = once.operation(define)
  const there = (await second()).operation(define)
  await op.run(who('k'), 1, async (attempt) => {
    await attempt.attach({ type: 'message', id: 'm-1' })
    const twin = await there.execute(who('k'), 1, never)
    assert.ok(twin.kind === 'refused' && twin.error.code === 'in_progress')
    assert.deepEqual(twin.error.details['pointer'], { type: 'message', id: 'm-1' })
  })
  assert.deepEqual((await once.get({ ...who('k'), operation: 'attach' }))?.record.pointer, {
    type: 'message',
    id: 'm-1',
  })
})

onEveryStore('a reservation starts under its fence, and a released claim is free', async ({ world, once }) => {
  const op = once.operation({ name: 'reserve', effect: 'external', whileRunning: 'conflict' })
  const reserved = await op.claim(who('a'), 1, { reserve: true })
  assert.ok(reserved.kind === 'first_attempt')
  assert.equal((await op.claim(who('a'), 1)).kind, 'in_progress')
  await reserved.lease.start()
  await world.advance(LAPSE_MS)
  // It had started, so its outcome is unknown.
  assert.equal((await op.claim(who('a'), 1)).kind, 'outcome_unknown')
  const given = await op.claim(who('b'), 1)
  assert.ok(given.kind === 'first_attempt')
  await given.lease.release()
  assert.equal((await op.claim(who('b'), 1)).kind, 'reclaimed')
  const doomed = await op.claim(who('c'), 1)
  assert.ok(doomed.kind === 'first_attempt')
  await doomed.lease.settle(failed(new Error('no')))
  assert.equal((await op.claim(who('c'), 1)).kind, 'replay_failure')
})

onEveryStore('a caller that gives up before its effect began gives its claim back', async ({ once }) => {
  const op = once.operation({ name: 'hangup', effect: 'external', whileRunning: 'conflict' })
  const controller = new AbortController()
  const gone = op.run(who('k'), 1, never, { signal: controller.signal })
  controller.abort(new Error('client hung up'))
  await assert.rejects(gone, /client hung up/)
  // The claim is given back a moment after the caller's error; until then a duplicate is refused.
  const next = await until(
    'the claim is given back',
    () => op.execute(who('k'), 1, () => 'ran'),
    (seen) => seen.kind !== 'refused' || seen.error.code !== 'in_progress',
  )
  assert.equal(next.kind, 'executed')

  // Once it began, hanging up changes nothing: the outcome is recorded.
  const second = new AbortController()
  const held = createHeld<string>()
  const slow = op.run(who('j'), 1, held.effect, { signal: second.signal })
  await held.begun
  second.abort(new Error('client hung up'))
  await assert.rejects(slow, /client hung up/)
  const settled = new Promise<void>((resolve) => {
    once.on((event) => {
      if (event.kind === 'settled' && event.identity.key === 'j') resolve()
    })
  })
  held.finish('kept')
  await settled
  // The flight itself lands in the same turn of the event loop.
  await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(await op.execute(who('j'), 1, never), { kind: 'replayed', value: 'kept' })
})

onEveryStore(
  'a stopped ledger renews no lease, but reports what still runs when its lease is over',
  async ({ second }) => {
    const ledger = await second()
    const op = ledger.operation({ name: 'stopped', effect: 'external', leaseMs: 2_500 })
    const claimed = await op.claim(who('k'), 1)
    assert.ok(claimed.kind === 'first_attempt')
    const { signal } = claimed.lease
    const over = once(signal, 'abort')
    await Promise.all([ledger.stop(), ledger.stop()])
    assert.equal(signal.aborted, false)
    await over
  },
)

onEveryStore('an effect that never ends blocks its key no longer than its lease', async ({ world, second, events }) => {
  const { runtime, pause } = pausable()
  const once = await second({ runtime })
  const op = once.operation({ name: 'stuck', effect: 'repeatable', whileRunning: 'conflict' })
  const begun = Promise.withResolvers<void>()
  const stuck = Promise.withResolvers<string>()
  const first = op.execute(who('k'), 1, () => {
    begun.resolve()
    return stuck.promise
  })
  await begun.promise
  const twin = await op.execute(who('k'), 1, never)
  assert.ok(twin.kind === 'refused' && twin.error.code === 'in_progress')
  const over = new Promise<void>((resolve) => once.on(({ kind }) => kind === 'lease_over' && resolve()))
  pause(LAPSE_MS)
  await world.advance(LAPSE_MS)
  await over
  assert.deepEqual(await op.execute(who('k'), 1, () => 'second'), { kind: 'executed', value: 'second' })
  // The first one ends after all: it changes nothing, and takes nothing from later attempts.
  stuck.resolve('first')
  const late = await first
  assert.ok(late.kind === 'refused' && late.error.code === 'lease_lost')
  assert.deepEqual(await op.execute(who('k'), 1, never), { kind: 'replayed', value: 'second' })
  assert.equal(kinds(events).includes('late_outcome_conflict'), true)
})
