import type { StreamFailure } from './simulation/judge.ts'
import type { StreamSimulationOptions } from './simulation/simulation.ts'
import { simulateStreams } from './simulation/simulation.ts'
import type { StreamTally } from './simulation/world.ts'

/** What a run leaves behind, in a form that a process can hand to another. */
export interface SeedResult {
  readonly seed: number
  readonly failure: StreamFailure | null
  readonly virtualMs: number
  readonly tally: StreamTally
  readonly lines: readonly string[]
}

export interface Form {
  /** The form of the tests: 20 clients, 3 regions, 15 seconds. */
  readonly short: boolean
  /** How many of its last lines a run reports. */
  readonly lines: number
}

const full: Omit<StreamSimulationOptions, 'seed'> = {
  clients: 100,
  regions: 5,
  durationMs: 60_000,
  messages: 3,
  storm: { absences: 25, absenceMs: 30_000, crashes: 3, restarts: 10, cuts: 20, moves: 10, partitions: 2 },
}

export async function runSeed(seed: number, { short, lines }: Form): Promise<SeedResult> {
  const { failure, virtualMs, tally, tail } = await simulateStreams({ ...(short ? { messages: 2 } : full), seed })
  return { seed, failure, virtualMs, tally, lines: tail(lines) }
}
