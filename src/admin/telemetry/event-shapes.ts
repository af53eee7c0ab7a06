import type { Identity } from '../../ledger/core/identity.ts'

/**
 * The events of the other rooms, as far as they are counted. They are shapes, because this room imports no other wing; a
 * test compares them with the real events.
 */

export interface LedgerEventShape {
  readonly kind: string
  readonly identity?: Identity
  readonly reclaimed?: boolean
  readonly expired?: boolean
  readonly state?: string
  readonly to?: string
  readonly answer?: string
  readonly removed?: number
  readonly what?: string
}

export interface GuardEventShape {
  readonly kind: 'blocked' | 'pending' | 'unattached' | 'error'
  readonly mode?: string
}

export interface InboxEventShape {
  readonly kind: string
  readonly consumer: string
}

export interface RelayEventShape {
  readonly kind: string
  readonly count?: number
  readonly lagMs?: number
}

export interface SagaEventShape {
  readonly kind: string
  readonly saga: string
  readonly why?: string
  readonly state?: string
}

export interface RunEventShape {
  readonly kind: string
  readonly definition?: string
  readonly state?: string
}

export interface StreamEventShape {
  readonly kind: 'resumed' | 'reset'
  readonly region: string
}

/** One region of a chat, as far as its gauge reads it. */
export interface RegionShape {
  readonly region: string
  silences(): readonly { readonly peer: string; readonly ms: number }[]
}

export interface RequestShape {
  /** The name of the operation; null for a request that no route takes. */
  readonly operation: string | null
  /** What was decided; null for one that decides nothing, such as a read. */
  readonly outcome: string | null
  readonly durationMs: number
}

/** What only one process knows, for the cards of its console. */
export interface FiguresShape {
  /** Conflicts of the one caller who had the most, within five minutes. */
  readonly keyReuseByOne: number
  /** Pending duplicates of the one workspace that had the most, within five minutes. */
  readonly pendingByOne: number
  /** Pairs of regions of which one has left the other without an answer for longer than ten seconds. */
  readonly linksCut: number
}

/** Acknowledged records that a store no longer has, after a failover or an old backup. */
export interface LossShape {
  readonly store: string
  /** `records` of PostgreSQL are counted one by one; `rolled_back` and `emptied` are buckets of Redis. */
  readonly what: 'records' | 'rolled_back' | 'emptied'
  readonly count: number
}

/** How things stand in the store. What a store does not have is left out. */
export interface StandingShape {
  readonly staleLeases?: number
  readonly unknownWaiting?: number
  readonly outbox?: {
    readonly lagMs: number
    readonly pending: number
    readonly parkedKeys: number
    readonly deadLetters: number
  }
  /** By consumer. */
  readonly inboxDeadLetters?: Readonly<Record<string, number>>
  readonly runsStuck?: number
  /** Steps whose outcome is unknown, and runs that are parked: as many as `unknowns` lists. */
  readonly runsUnknown?: number
  /** By queue. */
  readonly queues?: Readonly<Record<string, QueueShape>>
  /** By schedule: how long its next tick has been due. */
  readonly schedules?: Readonly<Record<string, { readonly lateMs: number }>>
}

/** The runs of a queue, by where they stand; from 10 000 on that number. */
export interface QueueShape {
  readonly waiting: number
  /** Their keys have no place. */
  readonly blocked: number
  /** Their time has not come. */
  readonly delayed: number
  readonly running: number
  /** How long the one that has waited longest has been waiting; 0 while none waits. */
  readonly oldestMs: number
}

/** How much a server has under way: `load` of a gateway. */
export interface LoadShape {
  readonly underWay: number
  /** How many may be under way now, where that changes with the speed of the store. */
  readonly most?: number
  readonly waiting: number
  readonly bodyBytes: number
}
