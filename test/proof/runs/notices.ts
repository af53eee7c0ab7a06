import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apart } from '../apart/apart.ts'
import type { Mutant } from '../simulation/mutate.ts'
import type * as Notice from './notice.ts'
import type { Rule } from './simulation/parts.ts'
import type { Size } from './simulation/world.ts'

/** A rule that is taken out, and the rules of the simulation of which one is broken then. */
export type RuleMutant = Mutant & { readonly rule: Rule | readonly Rule[] }

/** One test for each: it must be noticed within so many simulations. */
export function mustNotice(mutants: readonly RuleMutant[], size: Size, seeds: number): void {
  for (const { rule: expected, ...mutant } of mutants) {
    test(`the simulation notices when ${mutant.name}`, async (context) => {
      const module = import.meta.resolve('./notice.ts')
      const noticed = await apart<typeof Notice, 'notice'>(module, 'notice', mutant, size, seeds)
      if (noticed === null) return assert.fail(`not noticed in ${seeds} simulations`)
      context.diagnostic(`seed ${noticed.seed}: ${noticed.rule}: ${noticed.text.slice(0, 300)}`)
      assert.ok([expected].flat().includes(noticed.rule as Rule), noticed.text)
    })
  }
}
