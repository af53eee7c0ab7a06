import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SweepStep } from './sweep-loop.ts'
import { startSweepLoop } from './sweep-loop.ts'
import { createTestRuntime } from './test-runtime.ts'

const EVERY_MS = 10_000
const SHARE = 0.25
const STEP_MS = 30

/** A sweep with so many full steps of work, each of which takes a while on the test's clock. */
function scene({ left, waitedMs = 0 }: { left: number; waitedMs?: number }) {
  const runtime = createTestRuntime()
  const startedMs = runtime.monotonicMs()
  const began: number[] = []
  const failed: unknown[] = []
  const state = { left, failing: false, busyMs: 0 }
  const loop = startSweepLoop({
    runtime,
    everyMs: EVERY_MS,
    share: SHARE,
    async step(): Promise<SweepStep> {
      began.push(runtime.monotonicMs() - startedMs)
      await new Promise<void>((resolve) => void runtime.setTimer(STEP_MS, resolve, false))
      if (state.failing) throw new Error('Away.')
      state.busyMs += STEP_MS - waitedMs
      return { more: state.left-- > 0, waitedMs }
    },
    failed: (error) => failed.push(error),
  })
  return { runtime, began, failed, state, loop }
}

test('steps follow each other while there is more, within the share of time, and then pause', async () => {
  const { runtime, began, state } = scene({ left: 50 })
  await runtime.advance(EVERY_MS)
  assert.deepEqual(began, [EVERY_MS])
  // A step and its rest are four times the step.
  await runtime.advance(51 * (STEP_MS / SHARE))
  assert.equal(began.length, 51)
  assert.equal(state.left, -1)
  const spans = began.slice(1).map((at, index) => at - (began[index] ?? 0))
  for (const span of spans) assert.equal(span, STEP_MS / SHARE)
  await runtime.advance(EVERY_MS / 2)
  assert.equal(began.length, 51, 'nothing was left, so it pauses')
  await runtime.advance(EVERY_MS)
  assert.equal(began.length, 52)
})

test('time in which a step only waited for its turn was not its own', async () => {
  const { runtime, began } = scene({ left: 1_000, waitedMs: 25 })
  await runtime.advance(EVERY_MS)
  await runtime.advance(STEP_MS * 10)
  // Five of thirty milliseconds are work, and the waiting was rest enough: no pause in between.
  assert.equal(began.length, 11)
})

test('a step that fails does not spin', async () => {
  const { runtime, began, failed, state } = scene({ left: 1_000 })
  await runtime.advance(EVERY_MS + STEP_MS / SHARE)
  assert.equal(began.length, 2)
  state.failing = true
  await runtime.advance(EVERY_MS / 2)
  const count = failed.length
  assert.equal(count, 1)
  await runtime.advance(3 * (EVERY_MS + STEP_MS))
  assert.equal(failed.length, 4)
  state.failing = false
  await runtime.advance(EVERY_MS + STEP_MS / SHARE)
  assert.ok(began.length > 6, 'it continues when the store is back')
})

test('no step begins after stop', async () => {
  const { runtime, began, loop } = scene({ left: 1_000 })
  await runtime.advance(EVERY_MS)
  const stopping = loop.stop()
  await runtime.advance(STEP_MS)
  await stopping
  await runtime.advance(10 * EVERY_MS)
  assert.equal(began.length, 1)
})

test('while nothing happens it comes less and less often, and as often as ever once something does', async () => {
  const runtime = createTestRuntime()
  const startedMs = runtime.monotonicMs()
  const began: number[] = []
  const loop = startSweepLoop({
    runtime,
    everyMs: EVERY_MS,
    idleMs: 4 * EVERY_MS,
    share: SHARE,
    async step() {
      began.push((runtime.monotonicMs() - startedMs) / EVERY_MS)
      return { more: false, isIdle: began.length !== 5, waitedMs: 0 }
    },
    failed: assert.ifError,
  })
  await runtime.advance(18 * EVERY_MS)
  assert.deepEqual(began, [1, 3, 7, 11, 15, 16, 18])
  await loop.stop()
})
