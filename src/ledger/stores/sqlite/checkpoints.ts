import type { Database } from './driver.ts'

/**
 * A checkpoint copies the log into the file, inside of some commit, and all callers wait for it. How large the log may
 * grow before that depends on what the commits are like.
 */
export interface Checkpoints {
  /** Called with the rows of every group commit; of one row only while not all of the last ones were that small. */
  expect(rows: number): void
  readonly isSmall: boolean
}

/** Small commits: a log of 4 MiB is soon written over, and an fsync of what was written before is twice as fast. */
const PAGES_FEW = 1_000
/** Large ones, of some twenty pages each: fewer than one in a hundred shall wait, else the slowest hundredth would. */
const PAGES_MANY = 4_000

/** Rows of an average commit from which it counts as large, and to which it must fall to count as small again. */
const LARGE_ROWS = 6
const SMALL_ROWS = 3
const SMOOTHING = 0.1
/** An average this near to a single row is one. */
const ONE_ROW = 1.01

export function createCheckpoints(db: Database): Checkpoints {
  let average = 1
  let pages = PAGES_FEW
  const set = (wanted: number) => {
    pages = wanted
    db.exec(`PRAGMA wal_autocheckpoint = ${pages}`)
  }
  set(pages)
  const checkpoints = {
    isSmall: true,
    expect: (rows: number) => {
      average += SMOOTHING * (rows - average)
      checkpoints.isSmall = average < ONE_ROW
      if (checkpoints.isSmall) average = 1
      if (pages === PAGES_FEW && average > LARGE_ROWS) set(PAGES_MANY)
      else if (pages === PAGES_MANY && average < SMALL_ROWS) set(PAGES_FEW)
    },
  }
  return checkpoints
}
