import { defaults, limits } from './limits.ts'

export interface Backoff {
  readonly baseMs: number
  readonly capMs: number
}

/** Doubles from the base to the cap. `chance` in [0, 1) spreads it over the upper half, so that a crowd does not return at once. */
export function backoffMs(tries: number, { baseMs, capMs }: Backoff, chance: number): number {
  const exponent = Math.min(Math.max(tries - 1, 0), 52)
  const fullMs = Math.min(capMs, baseMs * 2 ** exponent)
  return Math.ceil(fullMs / 2 + (fullMs / 2) * chance)
}

/** What an effect asked for, as a whole number within bounds; nonsense counts as not asked. */
export function boundedRetryMs(askedMs: number | null | undefined): number | null {
  if (askedMs === null || askedMs === undefined || !Number.isFinite(askedMs)) return null
  return Math.min(Math.max(0, Math.ceil(askedMs)), limits.longestMs)
}

/** When a failed attempt may be tried again: the first retry at once, later ones ever more slowly. */
export function retryAfterMs(attempt: number, chance: number): number {
  if (attempt <= 1) return 0
  return backoffMs(attempt - 1, { baseMs: defaults.retryBaseMs, capMs: defaults.retryCapMs }, chance)
}
