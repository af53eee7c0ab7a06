export type Colour = 1 | 2 | 3 | 4 | 5 | 6

export interface Series {
  readonly name: string
  /** One for each time, oldest first; null where nothing was measured. */
  readonly values: readonly (number | null)[]
  /** Which of the colours of the series. */
  readonly colour: Colour
}
