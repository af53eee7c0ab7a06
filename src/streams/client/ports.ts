/** What a client needs from outside: connections, and a storage that survives it. Nothing here knows Node. */

import type { DeliveryStorage } from '../parts/delivery.ts'
import type { Pending, PendingStorage } from '../parts/sender.ts'
import type { FrameData, FrameFormat } from '../protocol/codec.ts'
import type { LogPlace, MessageContent, Position } from '../protocol/protocol.ts'

export interface ClientTransport {
  /** Begins to connect to a region and reports to `events`, later; `closed` comes once, as the last event. */
  connect(region: string, events: LinkEvents): ClientLink
}

export interface LinkEvents {
  /** What both ends agreed on. @default 'json' */
  opened(format?: FrameFormat): void
  received(data: FrameData): void
  /** Code and reason of the close frame; null when the connection just ended. */
  closed(code: number | null, reason: string): void
}

export interface ClientLink {
  send(data: FrameData): void
  close(): void
}

/** What is sent under one number, and again in the same words for as long as it is not acknowledged. */
export type PendingSend = MessageContent

/** How far a client has come: in the logs, and in the final order. */
export interface ClientPosition {
  readonly logs: Position
  readonly ordered: number
}

export interface ClientIdentity {
  readonly client: string
  readonly epoch: number
  readonly generation: number
}

/** What a restart finds. */
export interface ClientRecord {
  readonly identity: ClientIdentity
  /** The next number of the epoch. */
  readonly next: number
  readonly pending: readonly Pending<PendingSend>[]
  readonly acknowledged: LogPlace | null
  readonly position: ClientPosition
}

/**
 * Where a client keeps what must survive it. Everything is durable when its promise resolves. A storage that forgets its
 * pending messages must also forget the epoch: `load` then answers null, and the client takes a new identity.
 */
export interface ClientStorage extends PendingStorage<PendingSend>, DeliveryStorage<ClientPosition> {
  load(): Promise<ClientRecord | null>
  /** Before a hello leaves: a connection is to have this generation. */
  identify(identity: ClientIdentity): Promise<void>
  /** Another client or epoch from now on, with these pending messages and no other, numbered from 1; one write. */
  renew(identity: ClientIdentity, pending: readonly Pending<PendingSend>[]): Promise<void>
  /** Where the last acknowledged message stands. */
  acknowledged(place: LogPlace): Promise<void>
}
