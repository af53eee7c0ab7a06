import type { Thread } from './threads.ts'

/** Which rows are drawn: the newest, or some from the one on that has this id. */
export type View = { readonly kind: 'newest' } | { readonly kind: 'from'; readonly id: string }

export interface Range {
  readonly from: number
  /** The row after the last. */
  readonly to: number
}

/** Several screens: a reader who scrolls fast meets no end, and a browser has little to keep. */
export const DRAWN_ROWS = 160
/** By which the rows move when the reader comes near to their end. */
const STEP_ROWS = 60

export const newest: View = { kind: 'newest' }

export function rangeOf(view: View, rows: readonly Thread[]): Range {
  const last = Math.max(0, rows.length - DRAWN_ROWS)
  const first = view.kind === 'newest' ? -1 : rows.findIndex(({ message }) => message.id === view.id)
  // A row that is gone leaves its reader with the newest.
  const from = first === -1 ? last : Math.min(first, last)
  return { from, to: Math.min(rows.length, from + DRAWN_ROWS) }
}

/** The same rows, although others come behind them. */
export function staying(view: View, rows: readonly Thread[]): View {
  return startingAt(rangeOf(view, rows).from, rows)
}

export function further(view: View, rows: readonly Thread[], way: 'up' | 'down'): View {
  const { from } = rangeOf(view, rows)
  return startingAt(way === 'up' ? Math.max(0, from - STEP_ROWS) : from + STEP_ROWS, rows)
}

function startingAt(at: number, rows: readonly Thread[]): View {
  const row = rows[Math.min(at, Math.max(0, rows.length - DRAWN_ROWS))]
  return row === undefined ? newest : { kind: 'from', id: row.message.id }
}
