import type { Engine } from 'onceonly/run'
import type { SimulatedProcess, Simulation } from '../../../support/simulation.ts'
import type { SimulatedDatabase } from './database.ts'
import type { Part } from './program.ts'
import type { Outside } from './provider.ts'

export type Rule =
  | 'performed_twice'
  | 'not_performed'
  | 'not_ended'
  | 'diverged'
  | 'values_differ'
  | 'replay_differs'
  | 'too_many_at_once'
  | 'too_many_of_a_key'
  | 'too_fast'
  | 'too_early'
  | 'passed_over'

export type Breaks = (rule: Rule, text: string) => void

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
  readonly breaks: Breaks
  isCalm(): boolean
  join(process: SimulatedProcess, work: boolean): Promise<Member>
}
