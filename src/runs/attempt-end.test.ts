import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DAY } from '../ledger/core/limits.ts'
import type { Timer } from '../runtime/runtime.ts'
import { createRuntime } from '../runtime/runtime.ts'
import { createAttemptEnd } from './attempt-end.ts'

/** Timers as Node has them: one that is longer than 2^31 ms fires at once. */
function createTimers() {
  const timers = new Map<() => void, number>()
  let nowMs = 0
  const setTimer = (ms: number, fire: () => void): Timer => {
    timers.set(fire, nowMs + (ms < 2 ** 31 ? ms : 1))
    return { cancel: () => void timers.delete(fire) }
  }
  function passUntil(untilMs: number): void {
    for (;;) {
      const [next] = [...timers].filter(([, at]) => at <= untilMs).sort(([, one], [, other]) => one - other)
      if (next === undefined) break
      const [fire, at] = next
      timers.delete(fire)
      nowMs = at
      fire()
    }
    nowMs = untilMs
  }
  return { count: () => timers.size, passUntil, runtime: { ...createRuntime(), monotonicMs: () => nowMs, setTimer } }
}

test('an attempt that may take a month is given a month, and leaves no timer behind', async () => {
  const { signal: lost } = new AbortController()
  const { runtime, passUntil, count } = createTimers()
  const end = createAttemptEnd(runtime, { timeoutMs: 30 * DAY, branch: lost, lost })
  const signal = end.signal()
  const raced = end.race(new Promise<never>(() => {})).catch((error: unknown) => error)
  passUntil(30 * DAY - 1)
  assert.equal(signal.aborted, false)
  passUntil(30 * DAY)
  assert.equal(signal.aborted, true)
  assert.match(String(await raced), /longer than/)

  const stopped = createAttemptEnd(runtime, { timeoutMs: 30 * DAY, branch: lost, lost })
  passUntil(45 * DAY)
  stopped.stop()
  assert.equal(count(), 0)
})
