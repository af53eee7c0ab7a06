/** Sends of one person to one room, acknowledged when they are durable. */
export interface StreamsTask {
  readonly roundTripMs: number
  readonly measureMs: number
  /** Chance of a cut connection in each round trip, or in each tenth of a second where there is no delay. */
  readonly cuts: number
}

/** What the messages of a busy room take on the way to one reader. */
export interface BusyRoomTask {
  readonly people: number
  /** In each, one person in each of five regions writes. */
  readonly rounds: number
  /** The share of messages that reply to another one. */
  readonly replies: number
}

/** Two vector clocks, compared over and over. */
export interface ClocksTask {
  readonly nodes: number
  readonly form: 'sorted' | 'sparse'
  readonly comparisons: number
}

export const WINDOW = 64
export const TICK_LEAST_MS = 100
