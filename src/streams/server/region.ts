import { OnceError } from '../../ledger/core/errors.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { createRuntime } from '../../runtime/runtime.ts'
import { createSlots } from '../../runtime/slots.ts'
import type { StreamBounds } from '../bounds.ts'
import { streamBounds } from '../bounds.ts'
import type {
  Exchange,
  FenceAnswer,
  FenceRequest,
  Fork,
  OrderLog,
  RegionHint,
  RoomLog,
  Session,
  SessionClaim,
  SessionLink,
} from '../ports.ts'
import { isStreamName } from '../protocol/fields.ts'
import type { HelloFrame } from '../protocol/protocol.ts'
import { createServerConnection, type ServerConnection } from './connection.ts'
import type { PublishedMessage, PublishOptions } from './publish.ts'
import { createPublishing } from './publish.ts'
import { answerPull } from './pull.ts'
import type { HostedRoom } from './region-rooms.ts'
import { createRegionRooms } from './region-rooms.ts'
import { createRights, type SessionChoice } from './rights.ts'
import { createSession } from './session.ts'
import type { OpenSession, SessionHost } from './session-host.ts'
import { createSessionTable } from './session-table.ts'

/** One region: its rooms, its clients' sessions, and its part in the exchange with the others. */
export interface StreamRegion {
  readonly region: string
  /** Clients in rooms; one connection may have several. */
  readonly sessions: number
  /** How long each peer has left a pull of an open room unanswered; 0 while it answers. For telemetry. */
  silences(): readonly PeerSilence[]
  /** A transport has a new connection. */
  connect(link: SessionLink, options?: ConnectOptions): Session
  /**
   * Says something in a room, with the promises of a client's message: stored once for its id, shown everywhere after its
   * causes. Durable when it resolves. Any process may do it that has a region on this log, with connections or without.
   */
  publish(room: string, body: unknown, options: PublishOptions): Promise<PublishedMessage>
  /**
   * Ends the sessions of a client or of a user, in all rooms or in one, and says how many there were. They may come back
   * as soon as `authorize` lets them. Knows the sessions of this process only: call it in each.
   */
  kick(which: SessionChoice, reason?: string): number
  /**
   * Asks `authorize` again for the sessions of this process, after rights have changed: ends those that it refuses now, and
   * says how many these were.
   */
  review(which?: SessionChoice): Promise<number>
  /** Ends every session with `unavailable` and everything that runs; the log stays as it is. */
  stop(): Promise<void>
}

export interface PeerSilence {
  readonly peer: string
  readonly ms: number
}

export interface ConnectOptions {
  /** Names the user of this connection: `kick` and `review` find its sessions by that. @default none */
  readonly user?: string
  /**
   * Whether this client may be in this room on this connection: null, or why not. Asked for each room. @default every
   * client may
   */
  authorize?(hello: HelloFrame): Refusal | null | Promise<Refusal | null>
  /**
   * The name under which the region keeps a room, from the one that the client uses: where several tenants name their own
   * rooms. @default the same
   */
  roomOf?(room: string): string
}

/**
 * The reason why this user may not enter the room; `taken` when only the client's name belongs to another user, so that
 * the client takes a new one.
 */
export type Refusal = string | { readonly taken: string }

export interface StreamRegionOptions {
  /** The name of this region. */
  readonly region: string
  /** Keeps its rooms: `createSqlRoomLog`. */
  readonly log: RoomLog
  /** Where the final order is kept; without it there is only the provisional one. @default none */
  readonly order?: OrderLog
  /** The way to other regions: `createNatsExchange`. @default none */
  readonly exchange?: Exchange
  /** The names of the other regions. @default none */
  readonly peers?: readonly string[]
  /** For clients whose position has expired: everything that the room is made of, as one JSON value. @default none */
  snapshot?(room: string): Promise<unknown>
  /** A client continued from its position, or had to start over. For telemetry. @default none */
  on?(event: { readonly kind: 'resumed' | 'reset'; readonly region: string }): void
  /**
   * While regions were apart, clones of one client used a number for two messages, and both were acknowledged. This
   * region shows one of them, another region perhaps the other; this is the only word about the hidden one. @default none
   */
  onFork?(room: string, fork: Fork): void
  /** Something failed and is tried again. @default none */
  onProblem?(error: unknown): void
  /** Bounds of memory, times and retention that are to differ. @default those of `streamLimits` */
  readonly bounds?: Partial<StreamBounds>
  /** Time, randomness and scheduling; tests give their own. @default the system's */
  readonly runtime?: Runtime
}

/**
 * The rooms of one region: accepts messages of clients, stores them once, and delivers them in order, with those of
 * other regions.
 *
 * @example
 * ```ts
 * import { createServer } from 'node:http'
 * import { sqliteStore } from 'onceonly/sqlite'
 * import { createSocketServer, createSqlRoomLog, createStreamRegion } from 'onceonly/stream/server'
 * import { WebSocketServer } from 'ws'
 *
 * const region = createStreamRegion({
 *   region: 'eu',
 *   log: createSqlRoomLog({ store: sqliteStore('rooms.db'), region: 'eu' }),
 * })
 * createSocketServer({
 *   server: createServer().listen(3000),
 *   path: '/socket',
 *   WebSocketServer,
 *   admit: async (_request, token) =>
 *     token === null ? { kind: 'refused', status: 401, reason: 'Sign in.' } : { kind: 'admitted', who: token },
 *   begin: (link) => region.connect(link),
 * })
 * await region.publish('lobby', { text: 'Open' }, { id: 'open-1' })
 * ```
 */
export function createStreamRegion(options: StreamRegionOptions): StreamRegion {
  const { region, log, exchange } = options ?? {}
  if (typeof log?.open !== 'function') {
    const text = 'createStreamRegion needs a `log`: pass createSqlRoomLog({ store, region }).'
    throw new OnceError('bad_option', text, { details: { option: 'log' } })
  }
  for (const name of [region, ...(options.peers ?? [])]) {
    if (!isStreamName(name)) throw new OnceError('bad_option', `\`${name}\` is not a valid name of a region.`)
  }
  const runtime = options.runtime ?? createRuntime()
  const bounds = streamBounds(options.bounds)
  const regions = new Set([region, ...(options.peers ?? [])])
  const sessions = createSessionTable()
  const connections = new Set<ServerConnection>()
  const problem = (error: unknown) => options.onProblem?.(error)
  const work = createSlots(bounds.roomWork)
  const rooms = createRegionRooms({ ...options, runtime, bounds, work, problem, ordered: orderedIn, forked: forkedIn })
  const publishing = createPublishing({ rooms, runtime, bounds })
  let stopped = false

  function orderedIn(hosted: HostedRoom): void {
    for (const session of sessions.in(hosted.room.name)) session.ordered()
  }

  /** Notifies the clients here that use the identity, so that each takes a new one. */
  function forkedIn(room: string, fork: Fork): void {
    options.onFork?.(room, fork)
    for (const session of sessions.in(room)) {
      const { claim } = session
      if (claim?.client === fork.client && claim.epoch === fork.epoch) session.forked(fork.cseq)
    }
  }

  /** Of all sessions of a client the newest stays: here at once, elsewhere when it was asked, or the hint arrives. */
  function fenceOlder(room: string, claim: SessionClaim, newest: OpenSession | null): void {
    for (const session of sessions.in(room)) {
      if (session === newest || session.claim?.client !== claim.client) continue
      if (session.claim.generation <= claim.generation) {
        session.end('fenced', `generation ${claim.generation} has entered`)
      }
    }
  }

  /** Durable here too, so that what an old session still has under way is not accepted after this. */
  async function fence({ room, claim }: FenceRequest): Promise<FenceAnswer> {
    const entered = await log.enter(room, claim)
    if (entered.kind !== 'entered') return entered
    fenceOlder(room, claim, null)
    return { kind: 'entered' }
  }

  /** Only peers are asked: the name comes from a client. */
  async function fenceIn(previous: string | null, request: FenceRequest): Promise<FenceAnswer | null> {
    if (exchange === undefined || previous === null || previous === region) return null
    if (options.peers?.includes(previous) !== true) return null
    const late = Promise.withResolvers<null>()
    const timer = runtime.setTimer(bounds.fenceMs, () => late.resolve(null), true)
    try {
      return await Promise.race([exchange.fence(previous, request), late.promise])
    } catch (error) {
      // The hint reaches the peer when it is back.
      problem(error)
      return null
    } finally {
      timer.cancel()
    }
  }

  function hinted(hint: RegionHint): void {
    if (stopped) return
    switch (hint.kind) {
      case 'position':
        return rooms.hinted(hint)
      case 'entered':
        fence(hint).catch(problem)
    }
  }

  function hostOf(connection: ConnectOptions): SessionHost {
    return {
      region,
      user: connection.user ?? null,
      regions,
      log,
      runtime,
      bounds,
      roomOf: (name) => connection.roomOf?.(name) ?? name,
      room: (name) => rooms.open(name),
      entered(session, claim) {
        if (session.room === null) return
        sessions.entered(session.room.name, session)
        fenceOlder(session.room.name, claim, session)
        exchange?.hint({ kind: 'entered', region, room: session.room.name, claim })
      },
      fence: fenceIn,
      snapshot: async (room) => (await options.snapshot?.(room)) ?? null,
      refuses: async (hello) => (await connection.authorize?.(hello)) ?? null,
      ended: (session) => sessions.ended(session),
      problem,
      report: (kind) => options.on?.({ kind, region }),
    }
  }

  const serving = exchange?.serve({
    pull: (request) => work.use(() => answerPull(log, bounds, request)),
    fence,
    hinted,
  })

  return {
    region,
    get sessions() {
      return sessions.count
    },
    silences: () => (options.peers ?? []).map((peer) => ({ peer, ms: rooms.silentMs(peer) })),
    connect(link, options = {}) {
      const host = hostOf(options)
      const connection = createServerConnection({
        link,
        runtime,
        bounds,
        begin(channel) {
          const session = createSession(host, channel)
          sessions.began(session)
          return session
        },
        ended: (over) => void connections.delete(over),
      })
      connections.add(connection)
      if (stopped) connection.end('unavailable', 'the region stops')
      return connection
    },
    publish: publishing.publish,
    ...createRights(sessions),
    async stop() {
      stopped = true
      publishing.stop()
      for (const connection of connections) connection.end('unavailable', 'the region stops')
      rooms.stop()
      await serving?.stop()
    },
  }
}
