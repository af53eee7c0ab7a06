import { importMutated, type Mutant } from '../simulation/mutate.ts'
import type * as Schedules from './simulation/schedules.ts'
import type * as World from './simulation/world.ts'

/** The first simulation that shows what is missing. */
export async function notice(
  mutant: Mutant,
  size: World.Size,
  seeds: number,
): Promise<{ seed: number; rule: string; text: string } | null> {
  Error.stackTraceLimit = 0
  const { simulateRuns } = await importMutated<typeof World>('test/proof/runs/simulation/world.ts', mutant)
  for (let seed = 1; seed <= seeds; seed++) {
    const { broken } = await simulateRuns(seed, size)
    if (broken !== null) return { seed, ...broken }
  }
  return null
}

/** What the first simulation of schedules shows in which something is wrong. */
export async function noticeSchedules(mutant: Mutant, seeds: number, days: number): Promise<readonly string[]> {
  Error.stackTraceLimit = 0
  const { simulateSchedules } = await importMutated<typeof Schedules>('test/proof/runs/simulation/schedules.ts', mutant)
  for (let seed = 1; seed <= seeds; seed++) {
    const { wrong } = await simulateSchedules(seed, days)
    if (wrong.length > 0) return wrong
  }
  return []
}
