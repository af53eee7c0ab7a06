import type { AdapterName, OverheadTask } from '../task.ts'

/** Which request of which application is looked at. */
export interface AnatomyTask {
  readonly adapter: AdapterName
  readonly kept: Kept
  readonly requests: OverheadTask['requests']
  /** Requests of a measurement. Twice as many come before, so that the compiler is done. */
  readonly count: number
  /** Nothing else is counted. */
  readonly cpuOnly?: boolean
}

/** Where the records are; `none` is the bare route. */
export type Kept =
  | { readonly store: 'none' | 'memory' | 'sqlite' }
  | { readonly store: 'postgres' | 'redis'; readonly url: string }

/** So many requests at once, but for the one that is followed through the code. */
export const CALLERS = 64

/** From the server to the process of its callers. */
export interface Round {
  readonly from: number
  readonly count: number
  readonly callers: number
  readonly replayed: boolean
}
