import { OnceError } from '../../core/errors.ts'
import type { Time } from './clock.ts'
import type { Tables } from './tables.ts'
import type { Watchers } from './watch.ts'
import type { Writer } from './writer.ts'

/** What the parts of one memory store share. */
export interface Core {
  readonly tables: Tables
  readonly time: Time
  readonly writer: Writer
  readonly watchers: Watchers
  /** False in simulated time, in which the event loop does not turn. */
  readonly takesTurns: boolean
  /** Throws once the store has been stopped. */
  checkOpen(): void
}

export function stoppedError(): OnceError {
  return new OnceError('stopped', 'The memory store was stopped.')
}
