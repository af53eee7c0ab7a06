import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRuntime } from '../../runtime/runtime.ts'
import { createPaceWatch, type PacedBody } from './pace.ts'

const EVERY_MS = 500
const pace = { graceMs: 10_000, bytesPerSecond: 1_000, pauseMs: 3_000 }

function watching() {
  let nowMs = 0
  let due: (() => void) | null = null
  const runtime = {
    ...createRuntime(),
    monotonicMs: () => nowMs,
    setTimer(_ms: number, fire: () => void) {
      due = fire
      return { cancel() {} }
    },
  }
  const watch = createPaceWatch(EVERY_MS, runtime)
  return {
    watch,
    pass(ms: number, each = () => {}) {
      for (let passed = 0; passed < ms; passed += EVERY_MS) {
        nowMs += EVERY_MS
        each()
        const fire = due
        due = null
        fire?.()
      }
    },
    get isIdle() {
      return due === null
    },
  }
}

function body(): PacedBody & { came: number; held: boolean; slow: boolean } {
  return {
    pace,
    came: 0,
    held: false,
    slow: false,
    bytes() {
      return this.came
    },
    isHeld() {
      return this.held
    },
    tooSlow() {
      this.slow = true
    },
  }
}

test('a body that stops is too slow, and one that keeps arriving is not', () => {
  const { watch, pass } = watching()
  const [stopped, going] = [body(), body()]
  watch.watch(stopped)
  watch.watch(going)
  pass(2_500, () => (going.came += 500))
  assert.equal(stopped.slow, false)
  pass(500, () => (going.came += 500))
  assert.deepEqual([stopped.slow, going.slow], [true, false])
  pass(60_000, () => (going.came += 500))
  assert.equal(going.slow, false)
})

test('a trickle counts once its grace is over', () => {
  const { watch, pass } = watching()
  const trickle = body()
  watch.watch(trickle)
  pass(10_000, () => trickle.came++)
  assert.equal(trickle.slow, false)
  pass(500, () => trickle.came++)
  assert.equal(trickle.slow, true)
  assert.equal(watch.watched, 0)
})

test('the time in which the body is not read is not the sender’s', () => {
  const { watch, pass } = watching()
  const held = body()
  held.held = true
  watch.watch(held)
  pass(600_000)
  assert.equal(held.slow, false)
  held.held = false
  pass(3_000)
  assert.equal(held.slow, true)
})

test('without bodies there is no timer', () => {
  const world = watching()
  const end = world.watch.watch(body())
  end()
  end()
  world.pass(500)
  assert.ok(world.isIdle)
})
