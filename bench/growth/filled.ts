/** Records as they lie in a store after some days, made by SQL: through the API five million would take an hour. */
export interface Filling {
  readonly records: number
  readonly operation: string
  readonly policy: string
  readonly claimedAt: number
  readonly expiresAt: number
  /** Every tenth record is past its end, so that a sweep has something to do all the time. */
  readonly expiredEvery: number
  readonly expiredAt: number
  readonly outcome: string
}

const DAY_MS = 24 * 3_600_000
const RETAIN_MS = 7 * DAY_MS

export function fillingOf(records: number): Filling {
  const now = Date.now()
  return {
    records,
    operation: 'growth.old',
    policy: `rerun:${RETAIN_MS}:0:${30 * DAY_MS}`,
    claimedAt: now - 3 * DAY_MS,
    expiresAt: now + 4 * DAY_MS,
    expiredEvery: 10,
    expiredAt: now - DAY_MS,
    outcome: JSON.stringify({ receipt: 'receipt of an old order', text: 'x'.repeat(60) }),
  }
}

/** Rows of one statement of the filling: large enough to be fast, small enough that progress can be seen. */
export const FILL_ROWS = 250_000
