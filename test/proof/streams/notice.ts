import type { StreamRule } from '../../../lab/streams/simulation/judge.ts'
import type * as Streams from '../../../lab/streams/simulation/simulation.ts'
import { importMutated, type Mutant } from '../simulation/mutate.ts'

/** Where a rule protects from a rare coincidence, the weather or the form of the storm makes it less rare. */
export type StreamMutant = Mutant &
  Pick<Streams.StreamSimulationOptions, 'messages' | 'weather' | 'bounds' | 'storm'> & {
    /** The only rule by which it may be noticed. */
    readonly breaks?: StreamRule
  }

const form = { clients: 10, regions: 3, messages: 2, durationMs: 10_000, storm: { hurries: 6 } }

/** The first storm that shows what is missing. */
export async function notice(
  { breaks, messages = form.messages, weather = {}, bounds = {}, storm = {}, ...mutant }: StreamMutant,
  seeds: number,
): Promise<{ seed: number; rule: string; text: string } | null> {
  Error.stackTraceLimit = 0
  const { simulateStreams } = await importMutated<typeof Streams>('lab/streams/simulation/simulation.ts', mutant)
  for (let seed = 1; seed <= seeds; seed++) {
    const { failure } = await simulateStreams({
      ...form,
      seed,
      messages,
      weather,
      bounds,
      storm: { ...form.storm, ...storm },
    })
    if (failure !== null && failure.rule === (breaks ?? failure.rule))
      return { seed, rule: failure.rule, text: failure.text }
  }
  return null
}
