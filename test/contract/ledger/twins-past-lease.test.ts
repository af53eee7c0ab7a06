import assert from 'node:assert/strict'
import { MINUTE, SECOND } from 'onceonly'
import { createRuntime } from '../../../src/runtime/runtime.ts'
import { createHeld, onEveryStore, who } from '../../support/ledger/worlds.ts'

const LAPSE_MS = 36 * SECOND

onEveryStore('callers that joined an attempt decide anew when its lease ends', async ({ world, second, events }) => {
  const real = createRuntime()
  let pausedMs = 0
  const once = await second({ runtime: { ...real, monotonicMs: () => real.monotonicMs() + pausedMs } })
  const whileRunning = { waitMs: MINUTE }
  const op = once.operation<number>({ name: 'stuck', effect: 'repeatable', whileRunning })
  const stuck = createHeld<string>()
  const first = op.execute(who('k'), 1, stuck.effect)
  await stuck.begun
  let effects = 0
  const twins = Promise.all(
    Array.from({ length: 3 }, () =>
      op.execute(who('k'), 1, async () => {
        effects += 1
        return 'second'
      }),
    ),
  )
  pausedMs = LAPSE_MS
  await world.advance(LAPSE_MS)
  const answers = await twins
  assert.deepEqual(
    answers.map((answer) => 'value' in answer && answer.value),
    ['second', 'second', 'second'],
  )
  assert.equal(effects, 1)
  assert.ok(events.some(({ kind }) => kind === 'lease_over'))
  stuck.finish('first')
  const late = await first
  assert.ok(late.kind === 'refused' && late.error.code === 'lease_lost')
})
