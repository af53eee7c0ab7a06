import type { Slices } from '../harness/load.ts'
import type { PostgresPlace } from '../harness/postgres.ts'

export interface RunsTask {
  readonly callers: number
  readonly warmUpMs: number
  readonly measureMs: number
  readonly slices?: Slices
  /** Of ours: `once` writes its intent before it acts. */
  readonly semantics: 'keyed' | 'once'
}

/** Of a side that keeps its runs in PostgreSQL. */
export interface StoredRunsTask extends RunsTask, PostgresPlace {}

/** A request is a run of so many steps that do nothing: what is measured is what it costs to remember them. */
export const STEPS = 10

/** Compiles the code of both sides before anything is measured. */
export const WARM_UP = { warmUpRequests: 200, warmUpCallers: 8 }
