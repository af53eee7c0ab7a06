import type * as Run from '../../../lab/simulation/run.ts'
import type { Mutant } from './mutate.ts'
import { importMutated } from './mutate.ts'

/** The first storm that shows what is missing. */
export async function notice(
  mutant: Mutant,
  seeds: number,
): Promise<{ seed: number; rule: string; text: string } | null> {
  Error.stackTraceLimit = 0
  const { simulateLedger } = await importMutated<typeof Run>('lab/simulation/run.ts', mutant)
  const options = mutant.focus === undefined ? {} : { focus: mutant.focus }
  for (let seed = 1; seed <= seeds; seed++) {
    const { failure } = await simulateLedger(seed, options)
    if (failure !== null) return { seed, rule: failure.rule, text: failure.text }
  }
  return null
}
