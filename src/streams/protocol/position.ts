import { countOf } from '../parts/count.ts'
import type { LogPlace, Position } from './protocol.ts'

export { countOf }

/** True when `position` includes everything that `needed` names. */
export function covers(position: Position, needed: Position): boolean {
  for (const log in needed) if (countOf(position, log) < countOf(needed, log)) return false
  return true
}

/** True when `position` includes this place; no place is always included. */
export function coversPlace(position: Position, place: LogPlace | null): boolean {
  return place === null || countOf(position, place.log) >= place.n
}

/** What `needed` names and `position` does not have, as counts to come to. */
export function missingFrom(position: Position, needed: Position): Position {
  const missing: Record<string, number> = {}
  for (const log in needed) {
    const count = countOf(needed, log)
    if (countOf(position, log) < count) missing[log] = count
  }
  return missing
}

/** Log by log the larger count. */
export function furthest(a: Position, b: Position): Position {
  const further: Record<string, number> = { ...a }
  for (const log in b) further[log] = Math.max(countOf(further, log), countOf(b, log))
  return further
}

/** The position that also has this place. */
export function withCause(position: Position, cause: LogPlace | null): Position {
  return coversPlace(position, cause) || cause === null ? position : { ...position, [cause.log]: cause.n }
}
