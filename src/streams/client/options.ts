import type { StreamBounds } from '../bounds.ts'
import type { DeliveryMode } from '../parts/delivery.ts'
import type { MessageIdentity } from '../protocol/protocol.ts'
import type { StreamReceiver } from './intake.ts'
import type { SentMessage } from './outgoing.ts'
import type { ClientPosition, ClientStorage, ClientTransport, PendingSend } from './ports.ts'
import type { ClientRuntime } from './runtime.ts'

/** One participant of one room: sends, receives, and comes back by itself, here or in another region. */
export interface StreamClient {
  readonly room: string
  readonly identity: MessageIdentityPrefix
  readonly status: ClientStatus
  /** Why the region did not let this client into the room the last time, in its words; null where it did. */
  readonly refusal: string | null
  /** The region that it is connected to, or tries to. */
  readonly region: string
  readonly position: ClientPosition
  readonly pending: number
  /**
   * Kept for sending before it resolves; sent until it is acknowledged. A reply names a message that was received here, or
   * sent by this client: anything else is refused with `target_unknown`, before it is kept.
   */
  send(body: unknown, options?: { readonly replyTo?: MessageIdentity }): Promise<SentMessage>
  /** Continues in another region, or reconnects to the same one. May be called by a receiver. */
  moveTo(region: string): void
  /** When the application has done everything that has arrived so far. */
  idle(): Promise<void>
  stop(): Promise<void>
}

export type MessageIdentityPrefix = Pick<MessageIdentity, 'client' | 'epoch'>

/** `lagging`: connected, but the region lacks what this client has seen elsewhere; its messages wait. */
export type ClientStatus = 'connecting' | 'live' | 'lagging' | 'stopped'

export interface StreamClientOptions {
  /** The room to enter. */
  readonly room: string
  /** In the order in which they are tried. */
  readonly regions: readonly string[]
  /** How regions are reached: `createWebSocketTransport`, or a transport of your own. */
  readonly transport: ClientTransport
  /** Gets the messages of the room, one after the other. */
  readonly receiver: StreamReceiver
  /** How often the receiver may see a message after a restart. */
  readonly mode: DeliveryMode
  /** Where everything is kept that must survive this process; in memory, where nothing must. @default memory */
  readonly storage?: ClientStorage
  /**
   * Where a client without a position begins: with all that the room still has, or with what comes next.
   * @default 'start'
   */
  readonly from?: 'start' | 'head'
  /**
   * What a client with a stored position does after a restart: `continue` continues behind it, `replay` delivers everything
   * that the room still has, for applications that keep no copy of what they showed. Messages seen before the restart stay
   * causes of the messages sent after it.
   * @default 'continue'
   */
  readonly again?: 'continue' | 'replay'
  /** Called when the connection changes. @default none */
  onStatus?(status: ClientStatus): void
  /** The client took a new identity: a clone uses the old one, or no region remembers it. @default none */
  onIdentity?(identity: MessageIdentityPrefix, why: RenewReason): void
  /**
   * Messages that may have arrived, sent under an identity that is forgotten or that a copy of this client uses; no region
   * can decide it. The client does not send them again. After `cloned` they include everything pending at the start.
   * @default none
   */
  onDoubt?(messages: readonly PendingSend[], why: RenewReason): void
  /** Called with errors that no call can throw. @default none */
  onProblem?(error: unknown): void
  /** Time, randomness and scheduling; a simulator gives its own. @default the system's */
  readonly runtime?: ClientRuntime
  /**
   * Limits of the client that differ from the defaults, each with its unit in its name.
   * @default the session's defaults
   */
  readonly bounds?: Partial<StreamBounds>
}

/** Several rooms on one connection. */
export interface StreamConnection {
  /** Rooms that were entered and not stopped. */
  readonly rooms: ReadonlyMap<string, StreamClient>
  /**
   * Enters a room. Each has its own identity, position, storage, credit and rights: one that is refused or falls behind
   * holds up no other. Stop the client of a room to leave it.
   */
  room(name: string, options: StreamRoomOptions): Promise<StreamClient>
  /** Continues with all rooms in another region. */
  moveTo(region: string): void
  /** Leaves all rooms and closes the connection. */
  stop(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/** What every room of a connection shares. */
export type StreamConnectionOptions = Pick<StreamClientOptions, 'regions' | 'transport' | 'runtime' | 'bounds'>

/** What belongs to one room. A storage belongs to one room, too. */
export type StreamRoomOptions = Omit<StreamClientOptions, 'room' | keyof StreamConnectionOptions>

/**
 * `cloned` and `fork`: another client uses this identity and sent a message with the same number. `fenced`: another client
 * continued with this identity, and this one is an older copy. `unknown`: no region remembers the identity. `refused`: a
 * message replied to one that the room has never seen; the other messages continue without it, in a new epoch.
 */
export type RenewReason = 'cloned' | 'fork' | 'fenced' | 'unknown' | 'refused'
