import assert from 'node:assert/strict'
import { test } from 'node:test'
import type * as Run from '../../lab/simulation/run.ts'
import type { Mutant } from './mutate.ts'
import { importMutated } from './mutate.ts'

/** Storms within which each mutant must be noticed; the suite itself runs several times as many. */
const SEEDS = 500

/** One test per mutant: some storm breaks a rule of the simulation. */
export function noticeEach(mutants: readonly Mutant[]): void {
  Error.stackTraceLimit = 0
  for (const mutant of mutants) {
    test(`the simulation notices when ${mutant.name}`, async (context) => {
      const { simulateLedger } = await importMutated<typeof Run>('lab/simulation/run.ts', mutant)
      const options = mutant.focus === undefined ? {} : { focus: mutant.focus }
      for (let seed = 1; seed <= SEEDS; seed++) {
        const { failure } = await simulateLedger(seed, options)
        if (failure === null) continue
        context.diagnostic(`seed ${seed}: ${failure.rule}: ${failure.text}`)
        // A mutant that merely throws would be noticed by anybody.
        assert.notEqual(failure.rule, 'theWorldIsSound', failure.text)
        return
      }
      assert.fail(`not noticed in ${SEEDS} storms`)
    })
  }
}
