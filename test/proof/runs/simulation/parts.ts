import type { Engine } from 'onceonly/run'
import type { SimulatedProcess, Simulation } from '../../../../src/testing/simulation.ts'
import type { SimulatedDatabase } from './database.ts'
import type { Part } from './program.ts'
import type { Outside } from './provider.ts'

/** A process that has joined in: it drives runs, or only looks at them. */
export interface Member {
  readonly engine: Engine
  start(runId: string): Promise<void>
}

export interface World {
  readonly simulation: Simulation
  readonly database: SimulatedDatabase
  readonly outside: Outside
  readonly programs: ReadonlyMap<string, readonly Part[]>
  isCalm(): boolean
  join(process: SimulatedProcess, work: boolean): Promise<Member>
}
