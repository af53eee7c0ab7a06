import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RunOptions } from '../../../lab/simulation/run.ts'
import { apart } from '../apart/apart.ts'
import type * as Storms from './storms.ts'
import { traces } from './storms.ts'

/** Two tests of a thousand storms each: a slow machine must not run into the time limit of one. */
const SEEDS = 1_000
const HALVES = [1, 1_001]
const RESET_SEEDS = 150
const REPEATED_SEEDS = 30

const storms = import.meta.resolve('./storms.ts')

async function run(from: number, seeds: number, options: RunOptions = {}): Promise<Storms.Seen> {
  const seen = await apart<typeof Storms, 'storms'>(storms, 'storms', from, seeds, options)
  if (seen.broken !== null) assert.fail(seen.broken)
  return seen
}

for (const from of HALVES) {
  test(`the ledger keeps its promises in ${SEEDS} storms from seed ${from} on, and every call is answered after them`, async () => {
    const { effects, crashes, unknowns, answers } = await run(from, SEEDS)
    assert.ok(effects > 5 * SEEDS && crashes > SEEDS && unknowns > SEEDS / 10, `${effects}, ${crashes}, ${unknowns}`)
    const expected = [
      'value',
      'failure',
      'silence',
      'thrown',
      'in_progress',
      'retry_later',
      'not_done',
      'key_reused',
      'key_expired',
      'outcome_unknown',
      'lease_lost',
      'store_unavailable',
      'stopped',
    ]
    assert.deepEqual(
      expected.filter((kind) => !answers.has(kind)),
      [],
    )
  })
}

test('a store that loses everything is reported, and the world continues', async () => {
  const { lostReports } = await run(1, RESET_SEEDS, { reset: true })
  assert.ok(lostReports > 0)
})

test('one seed is one run, event by event, in whichever thread', async () => {
  const there = await apart<typeof Storms, 'traces'>(storms, 'traces', REPEATED_SEEDS)
  assert.equal(there.length, REPEATED_SEEDS)
  assert.deepEqual(await traces(REPEATED_SEEDS), there)
})
