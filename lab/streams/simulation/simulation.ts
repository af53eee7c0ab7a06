import type { StreamBounds } from '../../../src/streams/bounds.ts'
import type { StreamReceiver } from '../../../src/streams/client/intake.ts'
import { createRandom } from '../../../src/testing/random.ts'
import { createSimulation } from '../../../test/support/simulation.ts'
import type { StreamFailure } from './judge.ts'
import type { StreamWeather } from './network.ts'
import { mildWeather } from './network.ts'
import type { StreamStorm } from './storm.ts'
import { planStorm, shortStorm } from './storm.ts'
import type { StreamTally } from './world.ts'
import { createStreamWorld } from './world.ts'

/** A room, its regions and its participants in virtual time, in a storm that the seed chooses. */
export interface StreamSimulationOptions {
  readonly seed: number
  readonly clients?: number
  readonly regions?: number
  /** How long the storm lasts, and people write; then everything is healed and must come to rest. */
  readonly durationMs?: number
  /** What each client writes at least, besides its replies. */
  readonly messages?: number
  readonly storm?: Partial<StreamStorm>
  readonly weather?: Partial<StreamWeather>
  /** With a `retainMs` here, messages expire, and a client that was away too long starts over from a snapshot. */
  readonly bounds?: Partial<StreamBounds>
  /**
   * Your own receiver, one for each life of a client. It is called inside the transaction in which the message is
   * applied; what it throws fails the run.
   */
  receiver?(client: string): StreamReceiver
}

export interface StreamRun {
  readonly seed: number
  /** Null when every rule was kept; the same options give the same failure again. */
  readonly failure: StreamFailure | null
  readonly virtualMs: number
  readonly tally: StreamTally
  /** The last lines of what happened. */
  tail(lines: number): readonly string[]
}

/** Time after the storm within which every participant must have everything. */
const HEAL_MS = 60_000
const MOST_EVENTS = 5_000_000

/** Short, so that a storm of seconds holds what takes minutes outside. */
const quickBounds: Partial<StreamBounds> = {
  silenceMs: 3_000,
  fenceMs: 500,
  helloMs: 3_000,
  reconnectBaseMs: 100,
  reconnectCapMs: 1_000,
  pullEveryMs: 1_000,
  pullMs: 1_000,
  pullRetryBaseMs: 200,
  pullRetryCapMs: 1_000,
  detourMs: 1_000,
  // Few, so that a client that was away for a moment is fed from the log.
  tailEntries: 4,
  orderLeaseMs: 2_000,
  orderEveryMs: 500,
}

export async function simulateStreams(options: StreamSimulationOptions): Promise<StreamRun> {
  const { seed, clients = 20, regions = 3, durationMs = 15_000, messages = 3 } = options
  const sim = createSimulation({ seed })
  const world = createStreamWorld({
    sim,
    regions: Array.from({ length: regions }, (_, index) => `r${index + 1}`),
    clients: Array.from({ length: clients }, (_, index) => `c${index + 1}`),
    weather: { ...mildWeather, ...options.weather },
    bounds: { ...quickBounds, ...options.bounds },
    expires: options.bounds?.retainMs !== undefined,
    ...(options.receiver === undefined ? {} : { receiver: options.receiver }),
  })
  // The plan has a source of chance of its own: a change of the code under test does not change the storm.
  planStorm({
    sim,
    world,
    durationMs,
    messages,
    random: createRandom(seed ^ 0x5bd1e995),
    storm: { ...shortStorm, ...options.storm },
  })
  await world.run({ stormMs: durationMs, untilMs: durationMs + HEAL_MS, events: MOST_EVENTS })
  return { seed, failure: world.failure, virtualMs: sim.now(), tally: world.tally, tail: world.tail }
}
