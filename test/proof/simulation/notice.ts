import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apart } from '../apart/apart.ts'
import type { Mutant } from './mutate.ts'
import type * as One from './notice-one.ts'

/** Storms within which each mutant must be noticed; the suite itself runs several times as many. */
const SEEDS = 500

/** One test per mutant: some storm breaks a rule of the simulation. */
export function noticeEach(mutants: readonly Mutant[]): void {
  for (const mutant of mutants) {
    test(`the simulation notices when ${mutant.name}`, async (context) => {
      const module = import.meta.resolve('./notice-one.ts')
      const noticed = await apart<typeof One, 'notice'>(module, 'notice', mutant, SEEDS)
      if (noticed === null) return assert.fail(`not noticed in ${SEEDS} storms`)
      const { seed, rule, text } = noticed
      context.diagnostic(`seed ${seed}: ${rule}: ${text}`)
      // Any test would notice a mutant that merely throws.
      assert.notEqual(rule, 'theWorldIsSound', text)
    })
  }
}
