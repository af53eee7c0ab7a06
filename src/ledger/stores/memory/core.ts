import { OnceError } from '../../core/errors.ts'
import type { Time } from './clock.ts'
import type { Tables } from './tables.ts'
import type { Watchers } from './watch.ts'
import type { Writer } from './writer.ts'

/** What the parts of one memory store share. */
/**
 * Waits for the next turn of the event loop, together with everything else that came in this one. Requests that are
 * decided together are answered together, and that halves what a burst of HTTP requests costs: 150 µs of CPU for each
 * instead of 280, with 64 connections.
 */
export type NextTurn = () => Promise<void>

export function createNextTurn(): NextTurn {
  let next: Promise<void> | null = null
  return () => {
    next ??= new Promise((resolve) => {
      setImmediate(() => {
        next = null
        resolve()
      })
    })
    return next
  }
}

export interface Core {
  readonly tables: Tables
  readonly time: Time
  readonly writer: Writer
  readonly watchers: Watchers
  readonly nextTurn: NextTurn
  /** Throws once the store has been stopped. */
  checkOpen(): void
}

export function stoppedError(): OnceError {
  return new OnceError('stopped', 'The memory store was stopped.')
}
