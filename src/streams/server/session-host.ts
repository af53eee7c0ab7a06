import type { Runtime } from '../../runtime/runtime.ts'
import type { StreamBounds } from '../bounds.ts'
import type { FenceAnswer, FenceRequest, RoomLog, SessionClaim } from '../ports.ts'
import type { ClientFrame, CloseReason, HelloFrame } from '../protocol/protocol.ts'
import type { Room } from './room.ts'
import type { RoomOrder } from './room-order.ts'

/** What a session needs of its region. */
export interface SessionHost {
  readonly region: string
  /** The user of the connection, where the application named one. */
  readonly user: string | null
  /** It, and its peers. */
  readonly regions: ReadonlySet<string>
  readonly log: RoomLog
  readonly runtime: Runtime
  readonly bounds: StreamBounds
  /** The region's name of a room, from the client's. */
  roomOf(name: string): string
  /** Null when the region cannot open one more. */
  room(name: string): Promise<{ readonly room: Room; readonly order: RoomOrder | null }> | null
  /** The session is durably the client's only one: ends older ones in this process, and notifies the peers. */
  entered(session: OpenSession, claim: SessionClaim): void
  /**
   * Ends older sessions in the client's previous region and waits for it: null when that region is unknown, or when no answer
   * came in time.
   */
  fence(previousRegion: string | null, request: FenceRequest): Promise<FenceAnswer | null>
  /** What the application makes of the room up to here, for those whose position has expired. */
  snapshot(room: string): Promise<unknown>
  /** Null when the client may enter, else why not. */
  refuses(hello: HelloFrame): Promise<string | { readonly taken: string } | null>
  ended(session: OpenSession): void
  problem(error: unknown): void
  report(kind: 'resumed' | 'reset'): void
}

/** A session as its region sees it. */
export interface OpenSession {
  readonly claim: SessionClaim | null
  readonly room: Room | null
  readonly user: string | null
  /** A frame of this session, and how much of it came over the network. */
  received(frame: ClientFrame, bytes: number): void
  /** The line can take more. */
  drained(): void
  /** The client has left, or its connection has ended. */
  closed(): void
  end(why: CloseReason, reason: string): void
  /** Asks again whether the client may be in the room. True when that ended the session. */
  review(): Promise<boolean>
  /** There are new rows of the final order. */
  ordered(): void
  /** Elsewhere the number was accepted with another body. */
  forked(cseq: number): void
}
