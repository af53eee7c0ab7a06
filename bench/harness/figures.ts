/** What one side measured in one round, by name: `requestsPerS`, `p99Ms`, … */
export type Figures = Readonly<Record<string, number>>

export interface Pair {
  readonly ours: Figures
  readonly other: Figures | null
}
