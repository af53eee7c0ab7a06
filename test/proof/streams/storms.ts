import type { StreamRun, StreamSimulationOptions } from '../../../lab/streams/simulation/simulation.ts'
import { simulateStreams } from '../../../lab/streams/simulation/simulation.ts'

// Errors are part of the game here: where each of them was made is not worth the time.
Error.stackTraceLimit = 0

const LINES = 120

/** The numbers of all runs; and, of the first run that broke a rule, its story. */
export interface StormsSeen {
  readonly sum: Readonly<Record<keyof StreamRun['tally'], number>>
  readonly broken: string | null
}

/** Without functions, which cannot be sent to another thread. */
type Form = Omit<StreamSimulationOptions, 'receiver' | 'seed'>

export async function storms(from: number, seeds: number, form: Form): Promise<StormsSeen> {
  const sum: Record<string, number> = {}
  let broken: string | null = null
  for (let seed = from; seed < from + seeds && broken === null; seed++) {
    const run = await simulateStreams({ ...form, seed })
    if (run.failure !== null) broken = story(run)
    for (const [name, count] of Object.entries(run.tally)) sum[name] = (sum[name] ?? 0) + count
  }
  return { sum: sum as StormsSeen['sum'], broken }
}

function story({ seed, failure, tail }: StreamRun): string {
  return `${tail(LINES).join('\n')}\n\n${failure?.rule}: ${failure?.text}\nReplay: npm run lab -- streams --short --seed ${seed}`
}
