import type { StreamBounds } from '../bounds.ts'
import type { DeliveryMode } from '../parts/delivery.ts'
import type { MessageIdentity } from '../protocol/protocol.ts'
import type { StreamReceiver } from './intake.ts'
import type { Sent } from './outgoing.ts'
import type { ClientPlace, ClientPosition, ClientTransport, PendingSend } from './ports.ts'
import type { ClientRuntime } from './runtime.ts'

/** One participant of one room: sends, receives, and comes back by itself, here or in another region. */
export interface StreamClient {
  readonly identity: MessageIdentityPrefix
  readonly status: ClientStatus
  /** The region that it is connected to, or tries to. */
  readonly region: string
  readonly position: ClientPosition
  readonly pending: number
  /**
   * Kept for sending before it resolves; sent until it is acknowledged. A reply names a message that was received here, or
   * sent by this client: anything else is refused with `target_unknown`, before it is kept.
   */
  send(body: unknown, options?: { readonly replyTo?: MessageIdentity }): Promise<Sent>
  /** Goes on in another region, or connects anew in the same one. May be called by a receiver. */
  moveTo(region: string): void
  /** When the application has done everything that has arrived so far. */
  idle(): Promise<void>
  stop(): Promise<void>
}

export type MessageIdentityPrefix = Pick<MessageIdentity, 'client' | 'epoch'>

/** `lagging`: connected, but the region lacks what this client has seen elsewhere; its messages wait. */
export type ClientStatus = 'connecting' | 'live' | 'lagging' | 'stopped'

export interface StreamClientOptions {
  readonly room: string
  /** In the order in which they are tried. */
  readonly regions: readonly string[]
  readonly transport: ClientTransport
  readonly receiver: StreamReceiver
  /** How often the receiver may see a message after a restart. */
  readonly mode: DeliveryMode
  /** Where everything is kept that must survive this process; in memory, where nothing must. */
  readonly place?: ClientPlace
  /** Where a client without a position begins: with all that the room still has, or with what comes next. */
  readonly from?: 'start' | 'head'
  /**
   * What a client with a position does after a restart: goes on behind it, or shows everything again that the room still
   * has, for whoever keeps nothing of what it showed. What was seen before the restart stays a cause of what is said now.
   */
  readonly again?: 'go-on' | 'replay'
  onStatus?(status: ClientStatus): void
  /** The identity had to be taken anew: a clone has it, or nobody remembers it. */
  onIdentity?(identity: MessageIdentityPrefix, why: RenewReason): void
  /**
   * They may have arrived, and no region can tell: sent under an identity that is forgotten, or that a copy of this client
   * has. They are not sent again by themselves. After `cloned` everything is among them that was pending at the start.
   */
  onDoubt?(messages: readonly PendingSend[], why: RenewReason): void
  onProblem?(error: unknown): void
  readonly runtime?: ClientRuntime
  readonly bounds?: Partial<StreamBounds>
}

/**
 * `cloned` and `fork`: somebody else has this identity, and was met at the same number. `fenced`: somebody else has gone on
 * with it, and this is an older copy. `unknown`: nobody remembers it. `refused`: a message replied to what the room has
 * never seen; the others go on without it, in a new epoch.
 */
export type RenewReason = 'cloned' | 'fork' | 'fenced' | 'unknown' | 'refused'
