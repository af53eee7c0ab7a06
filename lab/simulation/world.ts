import type { TransactionalStore } from '../../src/ledger/store/port.ts'
import type { MemoryTx } from '../../src/ledger/stores/memory/index.ts'
import type { Random } from '../../src/testing/random.ts'
import type { Simulation } from '../../test/support/simulation.ts'
import type { Provider } from './provider.ts'
import type { Scenario, Weather } from './scenario.ts'
import type { Trace } from './trace.ts'
import type { Witness } from './witness.ts'

/** What all parts of one run share. */
export interface World {
  readonly simulation: Simulation
  readonly random: Random
  readonly scenario: Scenario
  readonly trace: Trace
  readonly witness: Witness
  readonly provider: Provider
  store(): TransactionalStore<MemoryTx>
  weather: Weather
  /** Until the weather clears: then also effects stop to break by themselves. */
  stormy: boolean
  /** What pointers point at: results that live outside of the ledger. */
  readonly things: Map<string, unknown>
  /**
   * Host and command of attempts whose outcome could not be recorded at once: their callers know more than the store.
   */
  readonly unrecorded: Set<string>
  readonly tally: RunTally
}

/** What a run covered, so that a test can check that it covered enough. */
export interface RunTally {
  effects: number
  crashes: number
  pauses: number
  unknowns: number
  /** Unknown outcomes of effects that never began: harmless, but an operator has to check them. */
  needlessUnknowns: number
  lostReports: number
  answers: Record<string, number>
}

/** Waits in a process: never again when it crashed, longer when it was paused. */
export function nap(runtime: { setTimer(ms: number, fire: () => void, background: boolean): unknown }, ms: number) {
  return new Promise<void>((resolve) => void runtime.setTimer(ms, resolve, false))
}
