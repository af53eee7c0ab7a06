import type { Pending } from '../parts/sender.ts'
import { IdempotentSender } from '../parts/sender.ts'
import type { AckResult, LogPlace, MessageIdentity, SendFrame } from '../protocol/protocol.ts'
import type { SessionBounds } from '../session-limits.ts'
import type { ClientStorage, PendingSend } from './ports.ts'

/** A message on its way. */
export interface SentMessage {
  /** Valid while the client keeps its identity: a new identity gives pending messages new numbers. */
  readonly identity: MessageIdentity
  /**
   * Where the message stands once a region has it durably; null when that is not remembered. Rejects when the outcome
   * is unknown.
   */
  readonly accepted: Promise<LogPlace | null>
}

/** What goes out of one client under one identity. Its writes are the caller's to do one after the other. */
export interface Outgoing {
  readonly pending: readonly Pending<PendingSend>[]
  readonly acknowledged: LogPlace | null
  /** The first number that is not acknowledged. */
  readonly pendingFrom: number
  /** The number that the next message gets. */
  readonly next: number
  accept(message: PendingSend): Promise<Pending<PendingSend>>
  /** What may leave on this connection now. */
  frames(): readonly SendFrame[]
  reconnected(): void
  /**
   * What a region accepted of this connection, in order; and where the last that it has of this identity stands, if
   * known.
   */
  acknowledge(results: readonly AckResult[], last: LogPlace | null): Promise<void>
  /** Numbers up to here have left this process at least once, or a process before it. */
  readonly sentBelow: number
  /** And these before the connection of now. */
  readonly sentEarlierBelow: number
}

export function createOutgoing(options: {
  readonly storage: ClientStorage
  readonly bounds: SessionBounds
  readonly restored: {
    readonly next: number
    readonly pending: readonly Pending<PendingSend>[]
    readonly acknowledged: LogPlace | null
  }
  /** Everything that waits may have been sent before. */
  readonly mayHaveLeft: boolean
  done(number: number, place: LogPlace | null): void
}): Outgoing {
  const { storage, restored, done } = options
  const { sendWindowBytes: windowBytes, pendingBytes: mostPendingBytes } = options.bounds
  const sizeOf = (message: PendingSend) => JSON.stringify(message).length
  const sender = new IdempotentSender<PendingSend>({ storage, windowBytes, mostPendingBytes, sizeOf, restored })
  let next = restored.next
  let sentBelow = options.mayHaveLeft ? restored.next : 1
  let sentEarlierBelow = sentBelow
  let acknowledged = restored.acknowledged

  return {
    get pending() {
      return sender.pending
    },
    get acknowledged() {
      return acknowledged
    },
    get pendingFrom() {
      return sender.pending[0]?.number ?? next
    },
    get next() {
      return next
    },
    get sentBelow() {
      return sentBelow
    },
    get sentEarlierBelow() {
      return sentEarlierBelow
    },
    async accept(message) {
      const pending = await sender.accept(message)
      next = Math.max(next, pending.number + 1)
      return pending
    },
    frames() {
      return sender.toSend().map(({ number, message }) => {
        sentBelow = Math.max(sentBelow, number + 1)
        return { kind: 'send', cseq: number, ...message }
      })
    },
    reconnected() {
      sentEarlierBelow = sentBelow
      sender.reconnected()
    },
    async acknowledge(results, last) {
      if (last !== null) {
        // Before the pending messages go: the proof must never be older than what it proves.
        await storage.acknowledged(last)
        acknowledged = last
      }
      const places = new Map(results.map((result) => [result.cseq, result.place]))
      // Each connection begins with the first that is pending, and a region answers in order.
      const floor = (results.at(-1)?.cseq ?? 0) + 1
      for (const number of await sender.acknowledge({ floor })) done(number, places.get(number) ?? null)
    },
  }
}
