import { limits } from '../ledger/core/limits.ts'
import type { AttemptFailure } from './entry.ts'
import { derivedKey } from './key.ts'

/** The failed attempts of a step: since when it may have happened, and under which key it is tried next. */
type Failures = readonly AttemptFailure[]

export function withFailure(failures: Failures, failure: Omit<AttemptFailure, 'number'>): Failures {
  return [...failures, { ...failure, number: (failures.at(-1)?.number ?? 0) + 1 }]
}

/** The first send with an unknown outcome; null when there was none. */
export function ambiguousSince(failures: Failures): number | null {
  return failures.find(({ definite }) => !definite)?.at ?? null
}

/** A probe or an operator found that nothing had happened. */
export function allDefinite(failures: Failures): Failures {
  return failures.map((failure) => ({ ...failure, definite: true }))
}

/**
 * A worker died that may have sent it. What comes next may prove that it did nothing itself, but not that the dead one
 * did nothing: so that one stays in the list, as of when it can first have happened.
 */
export function withUnseen(failures: Failures, since: number | null, attempt: number): Failures {
  if (since === null) return failures
  const message = 'A worker ended before it recorded whether this was sent.'
  return withFailure(failures, { name: 'Error', message, attempt, at: since, definite: false })
}

/**
 * A provider that keeps failures would answer with a definite one forever, so the next attempt takes another key. But while
 * an ambiguous one is open its key stays, whatever fails definitely after it: only that key can reveal its outcome, and any
 * other key would repeat the effect.
 */
export function keyAfter(key: string, failures: Failures): string {
  const open = failures.findIndex(({ definite }) => !definite)
  const last = (open < 0 ? failures : failures.slice(0, open)).at(-1)
  return last === undefined ? key : derivedKey(key, `attempt-${last.number}`)
}

/**
 * Of many failures, the last ones show what is wrong now. The first ambiguous one shows since when something may have
 * happened, and the one before it under which key.
 */
export function remembered(failures: Failures): Failures {
  if (failures.length <= limits.runFailures) return failures
  const open = Math.max(
    0,
    failures.findIndex(({ definite }) => !definite),
  )
  const recent = failures.length - limits.runFailures + 2
  return failures.filter((_, index) => index === open - 1 || index === open || index >= recent)
}
