import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RunOptions, RunResult } from '../../lab/simulation/run.ts'
import { simulateLedger } from '../../lab/simulation/run.ts'

/** Two tests of a thousand storms each: a slow machine must not run into the time limit of one. */
const SEEDS = 1_000
const HALVES = [1, 1_001]
const RESET_SEEDS = 150
const REPEATED_SEEDS = 30
const LINES = 120

// Errors are part of the game here: where each of them was made is not worth the time.
Error.stackTraceLimit = 0

/** Everything that the runs saw together: a simulation in which nothing happens proves nothing. */
interface Seen {
  effects: number
  crashes: number
  unknowns: number
  lostReports: number
  readonly answers: Map<string, number>
}

async function run(from: number, seeds: number, options: RunOptions = {}): Promise<Seen> {
  const seen: Seen = { effects: 0, crashes: 0, unknowns: 0, lostReports: 0, answers: new Map() }
  for (let seed = from; seed < from + seeds; seed++) {
    const result = await simulateLedger(seed, options)
    if (result.failure !== null) assert.fail(story(result, options))
    const { effects, crashes, unknowns, lostReports, answers } = result.tally
    seen.effects += effects
    seen.crashes += crashes
    seen.unknowns += unknowns
    seen.lostReports += lostReports
    for (const [kind, count] of Object.entries(answers)) seen.answers.set(kind, (seen.answers.get(kind) ?? 0) + count)
  }
  return seen
}

function story({ seed, failure, tail }: RunResult, { reset = false }: RunOptions): string {
  const replay = `npm run lab -- simulation --seed ${seed}${reset ? ' --reset' : ''}`
  return `${tail(LINES).join('\n')}\n\n${failure?.rule}: ${failure?.text}\nReplay: ${replay}`
}

for (const from of HALVES) {
  test(`the ledger keeps its promises in ${SEEDS} storms from seed ${from} on, and everybody is answered after them`, async () => {
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

test('a store that loses everything is reported, and the world goes on', async () => {
  const { lostReports } = await run(1, RESET_SEEDS, { reset: true })
  assert.ok(lostReports > 0)
})

test('one seed is one run, event by event', async () => {
  for (let seed = 1; seed <= REPEATED_SEEDS; seed++) {
    const first = await simulateLedger(seed)
    const second = await simulateLedger(seed)
    assert.equal(second.hash, first.hash, `seed ${seed}`)
    assert.equal(second.events, first.events)
  }
})
