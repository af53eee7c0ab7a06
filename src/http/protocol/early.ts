import type { Identity, RecordId } from '../../ledger/core/identity.ts'
import { recordIdOf } from '../../ledger/core/identity.ts'
import type { Answer } from './exchange.ts'

/** For a caller that prefers not to wait: its 202, while the handler runs on in the background. */
export interface Early {
  /** How long the caller waits for the handler's own answer first. */
  readonly waitMs: number
  /** Takes a place in the background. Null where all are taken: the caller waits for the handler then. */
  answer(): Answer | null
}

/**
 * Handlers in the background of one process. Callers that wait are bounded by their connections, these by nothing else,
 * and each may hold a body and an answer of 1 MiB.
 */
export const BACKGROUND_MOST = 100

/** A handler whose caller has its 202. */
export interface BackgroundHandler {
  /** The ledger that its claim is in. */
  readonly ledger: object
  readonly identity: Identity
  readonly transactional: boolean
  /** Settled when its outcome is recorded, or when nothing can be recorded any more. */
  readonly over: Promise<unknown>
}

const background = new Set<BackgroundHandler>()

export function createEarly(waitMs: number, handler: BackgroundHandler, accepted: (id: RecordId) => Answer): Early {
  return {
    waitMs,
    answer() {
      if (background.size >= BACKGROUND_MOST) return null
      background.add(handler)
      const leave = () => void background.delete(handler)
      handler.over.then(leave, leave)
      return accepted(recordIdOf(handler.identity))
    },
  }
}

/** The claim of a transaction is seen by others only when it has committed. */
export interface Uncommitted {
  readonly state: 'in_progress'
  readonly identity: Identity
  readonly pointer: null
}

/** What the store does not know of an operation yet, because its transaction runs in the background of this process. */
export function uncommittedOf(ledger: object, id: RecordId): Uncommitted | null {
  for (const { ledger: other, transactional, identity } of background) {
    if (other === ledger && transactional && recordIdOf(identity) === id) {
      return { state: 'in_progress', identity, pointer: null }
    }
  }
  return null
}

/** For servers that wait for their handlers when they stop: those in the background hold no connection open. */
export async function backgroundOver(ledger: object): Promise<void> {
  const running = [...background].filter((each) => each.ledger === ledger)
  await Promise.allSettled(running.map(({ over }) => over))
}
