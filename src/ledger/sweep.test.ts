import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestRuntime } from '../runtime/test-runtime.ts'
import { limits, MINUTE, SECOND } from './core/limits.ts'
import { createLedger } from './ledger.ts'
import type { Store, Swept } from './store/port.ts'
import { memoryStore } from './stores/memory/index.ts'

/** A table of records that end one after the other: only what the sweep needs of a store, by the test's clock. */
function scene() {
  const runtime = createTestRuntime()
  const startedMs = runtime.monotonicMs()
  const nowMs = () => runtime.monotonicMs() - startedMs
  /** When each record ends, in the order of the table; null where it was removed. */
  const ends: (number | null)[] = []
  const steps: { readonly atMs: number; readonly from: number }[] = []
  const state = { failing: false }
  const sweep = async (cursor: string | null, limit: number): Promise<Swept> => {
    steps.push({ atMs: nowMs(), from: Number(cursor ?? 0) })
    if (state.failing) throw new Error('Away.')
    let [looked, removed, place] = [0, 0, Number(cursor ?? 0)]
    for (; place < ends.length && looked < limit; place++) {
      const end = ends[place] ?? null
      if (end === null) continue
      looked++
      if (end > nowMs()) continue
      ends[place] = null
      removed++
    }
    return { cursor: looked < limit ? null : String(place), looked, removed }
  }
  const memory = memoryStore()
  const store: Store = { ...memory, upkeep: { ...memory.upkeep, sweep } }
  const failures: string[] = []
  const ledger = createLedger({
    store,
    runtime,
    on: (event) => {
      if (event.kind === 'background_failed') failures.push(event.what)
    },
  })
  const left = () => ends.filter((end) => end !== null).length
  return { runtime, ends, steps, state, failures, ledger, left, nowMs }
}

/** Steps whose clock does not move count a millisecond each. */
const restMs = 1 / limits.sweepShare

test('the sweep removes as much as there is, whatever the size of a round', async (t) => {
  const { runtime, ends, steps, ledger, left } = scene()
  t.after(() => ledger.stop())
  const count = 120 * limits.ledgerSweepRows
  for (let n = 0; n < count; n++) ends.push(SECOND)
  await runtime.advance(limits.ledgerSweepEveryMs)
  await runtime.advance(130 * restMs)
  assert.equal(left(), 0)
  assert.ok(steps.length >= 120 && steps.length <= 125, `${steps.length} steps`)
  await runtime.advance(3 * limits.ledgerSweepEveryMs)
  assert.ok(steps.length <= 135, `${steps.length} steps: an empty table is left alone`)
})

test('at a steady rate the records stay bounded, and the table is not read over and over', async (t) => {
  const { runtime, ends, steps, ledger, left, nowMs } = scene()
  t.after(() => ledger.stop())
  const [perSecond, retainMs, seconds] = [1_000, MINUTE, 180]
  let most = 0
  for (let second = 0; second < seconds; second += 2) {
    for (let n = 0; n < 2 * perSecond; n++) ends.push(nowMs() + retainMs)
    await runtime.advance(2 * SECOND)
    most = Math.max(most, left())
  }
  const worthMs = (most / perSecond) * SECOND
  assert.ok(worthMs <= retainMs + 2 * limits.ledgerSweepEveryMs, `the worth of ${worthMs} ms`)
  // So many steps remove what ended; each round adds one look at the oldest and some steps through the others.
  const full = (perSecond * (seconds - retainMs / SECOND)) / limits.ledgerSweepRows
  const rounds = (seconds * SECOND) / limits.ledgerSweepEveryMs
  assert.ok(steps.length < full + rounds * (limits.sweepIdleSteps + 4), `${steps.length} steps`)
})

test('behind many that live long they stay bounded, too, once the sweep has found them', async (t) => {
  const { runtime, ends, ledger, left, nowMs } = scene()
  t.after(() => ledger.stop())
  const [perSecond, retainMs] = [1_000, MINUTE]
  const long = 2 * limits.sweepIdleSteps * limits.ledgerSweepRows
  for (let n = 0; n < long; n++) ends.push(Number.MAX_SAFE_INTEGER)
  let most = 0
  for (let second = 0; second < 300; second += 2) {
    for (let n = 0; n < 2 * perSecond; n++) ends.push(nowMs() + retainMs)
    await runtime.advance(2 * SECOND)
    if (second > 180) most = Math.max(most, left() - long)
  }
  const worthMs = (most / perSecond) * SECOND
  assert.ok(worthMs <= retainMs + 2 * limits.ledgerSweepEveryMs, `the worth of ${worthMs} ms`)
})

test('records with a short life are found behind many that live long', async (t) => {
  const { runtime, ends, ledger, left } = scene()
  t.after(() => ledger.stop())
  const long = 5 * limits.sweepIdleSteps * limits.ledgerSweepRows
  for (let n = 0; n < long; n++) ends.push(Number.MAX_SAFE_INTEGER)
  for (let n = 0; n < 40_000; n++) ends.push(SECOND)
  await runtime.advance(7 * (limits.ledgerSweepEveryMs + limits.sweepIdleSteps * restMs))
  assert.equal(left(), long)
})

test('a store that is away is asked again after a pause, and after stop not at all', async () => {
  const { runtime, ends, steps, state, failures, ledger, left } = scene()
  for (let n = 0; n < 40_000; n++) ends.push(SECOND)
  state.failing = true
  await runtime.advance(5 * limits.ledgerSweepEveryMs)
  assert.deepEqual(failures.filter((what) => what === 'sweep').length, 5)
  state.failing = false
  await runtime.advance(limits.ledgerSweepEveryMs + restMs * 20)
  assert.equal(left(), 0)
  for (let n = 0; n < 40_000; n++) ends.push(SECOND)
  const stopping = ledger.stop()
  await runtime.advance(MINUTE)
  await stopping
  const count = steps.length
  await runtime.advance(10 * MINUTE)
  assert.equal(steps.length, count)
  assert.equal(left(), 40_000)
})
