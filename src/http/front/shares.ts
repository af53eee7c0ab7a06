import type { Runtime, Timer } from '../../runtime/runtime.ts'
import { createHoldings, isFair } from './fair.ts'

/** Places for what is under way at once, shared between keys: workspaces, or addresses. */
export interface Shares {
  /** Whether this key may have one more now. */
  mayEnter(key: string): boolean
  /** Takes a place, if it may. */
  enter(key: string): boolean
  /** Gives one back. */
  leave(key: string): void
  /**
   * Begins as soon as there is a place: at once, before this returns, or after a wait in the queue.
   *
   * @param refused there was no room in the queue, or no place in time
   * @returns ends the wait; without a meaning once either of them was called
   */
  whenFree(key: string, begin: () => void, refused: () => void): () => void
  readonly underWay: number
  readonly waiting: number
}

export interface SharesOptions {
  /** How many may be under way; asked each time, because it may change. */
  readonly most: () => number
  /**
   * Where `most` was lowered: up to here a key with less than its equal part still gets more, whatever the others have from
   * before. @default 0
   */
  readonly ceiling?: number
  /** Of them and of the queue, for one key alone: from 0 to 1. */
  readonly share: number
  /** How many may wait, and how long. @default none */
  readonly queue?: { readonly most: number; readonly waitMs: number; readonly runtime: Runtime }
}

interface Waiter {
  readonly key: string
  readonly begin: () => void
  readonly timer: Timer
}

const nothing = () => {}

/**
 * Bounds what is under way at once, so that no key takes all places.
 *
 * @example
 * ```ts
 * import { createShares, frontLimits } from 'onceonly/http/limits'
 *
 * const shares = createShares({ most: () => 100, share: frontLimits.placeShare })
 * if (shares.enter('tenant-7')) {
 *   // What is bounded.
 *   shares.leave('tenant-7')
 * }
 * ```
 */
export function createShares({ most, ceiling = 0, share, queue }: SharesOptions): Shares {
  const places = createHoldings()
  const queued = createHoldings()
  /** By key, the one whose turn is next first; within a key in the order in which they came. */
  const lines = new Map<string, Set<Waiter>>()

  function hasRoom(key: string): boolean {
    const held = places.of(key)
    if (isFair(share, held, most() - places.total - 1)) return true
    if (places.total >= ceiling) return false
    const keys = held === 0 ? places.keys + 1 : places.keys
    return held < Math.max(1, Math.floor((most() * share) / keys))
  }

  // Behind the requests of the same key that wait already.
  const mayEnter = (key: string) => !(lines.size > 0 && lines.has(key)) && hasRoom(key)

  function enter(key: string): boolean {
    if (!mayEnter(key)) return false
    places.add(key, 1)
    return true
  }

  function remove(waiter: Waiter): boolean {
    const line = lines.get(waiter.key)
    if (line?.delete(waiter) !== true) return false
    waiter.timer.cancel()
    queued.add(waiter.key, -1)
    if (line.size === 0) lines.delete(waiter.key)
    return true
  }

  /** One after the other, so that a key with a long line gets no more than one with a short line. */
  function letIn(): void {
    for (const [key, line] of lines) {
      const [next] = line
      if (next === undefined || !hasRoom(key)) continue
      places.add(key, 1)
      remove(next)
      if (lines.delete(key)) lines.set(key, line)
      next.begin()
    }
  }

  return {
    mayEnter,
    enter,
    leave(key) {
      places.add(key, -1)
      if (lines.size > 0) letIn()
    },
    whenFree(key, begin, refused) {
      if (enter(key)) {
        begin()
        return nothing
      }
      if (queue === undefined || !isFair(share, queued.of(key), queue.most - queued.total - 1)) {
        refused()
        return nothing
      }
      const giveUp = () => {
        if (remove(waiter)) refused()
      }
      const waiter: Waiter = { key, begin, timer: queue.runtime.setTimer(queue.waitMs, giveUp, true) }
      const line = lines.get(key)
      if (line === undefined) lines.set(key, new Set([waiter]))
      else line.add(waiter)
      queued.add(key, 1)
      return () => void remove(waiter)
    },
    get underWay() {
      return places.total
    },
    get waiting() {
      return queued.total
    },
  }
}
