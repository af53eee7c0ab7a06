import assert from 'node:assert/strict'
import { test } from 'node:test'
import { simulateRuns } from './simulation/world.ts'

/** The lab (`npm run lab -- run-simulation`) tries thousands. */
const SEEDS = 30

test('made-up runs through crashes, pauses, lost answers, refusals and jumps of the clock keep every rule', async () => {
  let sent = 0
  for (let seed = 1; seed <= SEEDS; seed++) {
    const { broken, ...result } = await simulateRuns(seed)
    assert.equal(broken, null, `seed ${seed}`)
    assert.ok(result.crashes > 0)
    sent += result.sent
  }
  assert.ok(sent > SEEDS, `${sent} sends`)
})
