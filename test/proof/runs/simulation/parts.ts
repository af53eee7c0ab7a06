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
  | 'let_in_while_paused'
  | 'left_its_queue'
  | 'not_undone'
  | 'undone_out_of_order'
  | 'undone_without_cancel'
  | 'acted_after_cancel'
  | 'cancelled_by_none'
  | 'attributes_differ'
  | 'event_missed'

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
  /** Also of a run that continues or was forked; null for a child. */
  programOf(runId: string): readonly Part[] | null
  readonly breaks: Breaks
  isCalm(): boolean
  /** The operator cancels and forks often. */
  readonly busyOperator: boolean
  join(process: SimulatedProcess, work: boolean): Promise<Member>
}
