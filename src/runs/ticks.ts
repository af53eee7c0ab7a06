import { MINUTE, SECOND } from '../ledger/core/limits.ts'
import type { CatchUp, NextAfter } from './schedule.ts'

/** A tick that is so late was missed: a process that is only slow has not missed it. */
const MISSED_MS = 1 * MINUTE
/** Ticks that one transaction handles; the rest come with the next. */
const MOST_TICKS = 100

/** The ticks that are to be handled now, of those from `first` to `now`, oldest first. */
export function ticksDue(nextAfter: NextAfter, first: number, now: number, catchUp: CatchUp): readonly number[] {
  if (first > now) return []
  if (catchUp === 'all') return ticksFrom(nextAfter, first, now)
  const last = lastTick(nextAfter, first, now)
  return catchUp === 'last' || now - last <= MISSED_MS ? [last] : []
}

function ticksFrom(nextAfter: NextAfter, first: number, now: number): number[] {
  const ticks: number[] = []
  for (let tick: number | null = first; tick !== null && tick <= now && ticks.length < MOST_TICKS; ) {
    ticks.push(tick)
    tick = nextAfter(tick)
  }
  return ticks
}

/** Looked for backwards, in windows that double: a schedule of seconds may have missed a year of them. */
function lastTick(nextAfter: NextAfter, first: number, now: number): number {
  for (let windowMs = SECOND; now - windowMs > first; windowMs *= 2) {
    const found = nextAfter(now - windowMs)
    if (found !== null && found <= now) return lastFrom(nextAfter, found, now)
  }
  return lastFrom(nextAfter, first, now)
}

function lastFrom(nextAfter: NextAfter, first: number, now: number): number {
  let last = first
  for (let next = nextAfter(last); next !== null && next <= now; next = nextAfter(next)) last = next
  return last
}
