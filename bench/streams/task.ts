/** Sends of one person to one room, acknowledged when they are durable. */
export interface StreamsTask {
  readonly roundTripMs: number
  readonly measureMs: number
  /** Chance of a cut connection in each round trip, or in each tenth of a second where there is no delay. */
  readonly cuts: number
}

/** Two vector clocks, compared over and over. */
export interface ClocksTask {
  readonly nodes: number
  readonly form: 'sorted' | 'sparse'
  readonly comparisons: number
}

export const WINDOW = 64
export const TICK_LEAST_MS = 100
