import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLeaseClock } from './runtime.ts'
import { createTestRuntime } from './test-runtime.ts'

function scene() {
  const clocks = { monotonic: 1_000.25, wall: 1_700_000_000_000 }
  const runtime = {
    ...createTestRuntime(),
    monotonicMs: () => clocks.monotonic,
    wallMs: () => Math.floor(clocks.wall),
  }
  const pass = (ms: number) => {
    clocks.monotonic += ms
    clocks.wall += ms
  }
  return { clocks, pass, clockMs: createLeaseClock(runtime) }
}

test('while both clocks agree it is the monotonic one, however often it is asked', () => {
  const { clocks, pass, clockMs } = scene()
  for (let n = 0; n < 10_000; n++) {
    pass(0.3)
    assert.equal(clockMs(), clocks.monotonic)
  }
})

test('time in which the machine was suspended has passed, once', () => {
  const { clocks, pass, clockMs } = scene()
  const before = clockMs()
  clocks.wall += 60_000
  assert.equal(clockMs() - before, 60_000)
  pass(5_000)
  assert.equal(clockMs() - before, 65_000)
})

test('many short suspensions add up', () => {
  const { clocks, pass, clockMs } = scene()
  const before = clockMs()
  for (let n = 0; n < 100; n++) {
    pass(10)
    clocks.wall += 30
    clockMs()
  }
  const passed = clockMs() - before
  assert.ok(passed > 3_800 && passed <= 4_000, `${passed}`)
})

test('a wall clock that is set back takes nothing away, and what is missed after it still counts', () => {
  const { clocks, pass, clockMs } = scene()
  const before = clockMs()
  pass(1_000)
  clocks.wall -= 3_600_000
  assert.equal(clockMs() - before, 1_000)
  clocks.wall += 60_000
  assert.equal(clockMs() - before, 61_000)
})

test('without a wall clock no suspension is detected', () => {
  const runtime = createTestRuntime()
  const clockMs = createLeaseClock(runtime)
  assert.equal(clockMs(), runtime.monotonicMs())
})

test('where the uptime is known, a clock change is distinguished from a suspended machine', () => {
  const clocks = { monotonic: 1_000, wall: 1_700_000_000_000, up: 50_000 }
  const clockMs = createLeaseClock({
    ...createTestRuntime(),
    monotonicMs: () => clocks.monotonic,
    wallMs: () => clocks.wall,
    // In whole seconds, as some machines count.
    upMs: () => Math.floor(clocks.up / 1_000) * 1_000,
  })
  const before = clockMs()
  for (const jumpMs of [3_600_000, -7_200_000, 3_600_000]) {
    clocks.wall += jumpMs
    assert.equal(clockMs(), before, 'the clock was set')
  }
  clocks.wall += 60_000
  clocks.up += 60_000
  assert.equal(clockMs() - before, 60_000, 'the machine slept')
  clocks.wall += 3_600_000
  assert.equal(clockMs() - before, 60_000)
})
