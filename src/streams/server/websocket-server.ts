import type { IncomingMessage } from 'node:http'
import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { createRuntime, type Runtime, sleep } from '../../runtime/runtime.ts'
import { streamProtocols, TOKEN_PREFIX } from '../client/websocket.ts'
import { streamLimits } from '../limits.ts'
import type { Session } from '../ports.ts'
import { closeCodes } from '../protocol/protocol.ts'
import type { HttpServer, WebSocketServerClass } from './websocket-driver.ts'
import { openLink, type SocketLink } from './websocket-link.ts'

/** Grace period of `stop`: connections that have not closed by then are cut. */
const STOP_MS = 3_000
const STOP_LOOK_MS = 10
/** Connections of one server: each costs memory. */
const CONNECTIONS_MOST = 10_000

/** The authenticated user, as the application represents it; or a refusal, which ends the handshake with its status. */
export type Admission<Who> =
  | { readonly kind: 'admitted'; readonly who: Who }
  | { readonly kind: 'refused'; readonly status: number; readonly reason: string }

export interface SocketServerOptions<Who> {
  /** Your HTTP server; upgrades of other paths are left to other listeners. */
  readonly server: HttpServer
  /** The path of upgrades, without a query. */
  readonly path: string
  /** The class of `ws`. */
  readonly WebSocketServer: WebSocketServerClass
  /** Asked before the connection is opened. The token is that of `Authorization: Bearer`, or of the subprotocol. */
  admit(request: IncomingMessage, token: string | null): Promise<Admission<Who>>
  /** Gives the connection to a region. */
  begin(link: SocketLink, who: Who): Session
  /** More connections are refused. @default 10 000 */
  readonly mostConnections?: number
  /** Time and scheduling; tests give their own. @default the system's */
  readonly runtime?: Runtime
}

export interface SocketServer {
  readonly connections: number
  /** Takes no more connections, asks open ones to go elsewhere, and cuts those that do not. */
  stop(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Sessions over WebSockets at one path of an HTTP server.
 *
 * @example
 * ```ts
 * import { createServer } from 'node:http'
 * import { createMemoryRoomLog } from 'onceonly/stream/ports'
 * import { createSocketServer, createStreamRegion } from 'onceonly/stream/server'
 * import { WebSocketServer } from 'ws'
 *
 * const region = createStreamRegion({ region: 'eu', log: createMemoryRoomLog({ region: 'eu', nowMs: Date.now }) })
 * const server = createServer().listen(3000)
 * const sockets = createSocketServer({
 *   server,
 *   path: '/socket',
 *   WebSocketServer,
 *   admit: async () => ({ kind: 'admitted', who: null }),
 *   begin: (link) => region.connect(link),
 * })
 * ```
 */
export function createSocketServer<Who>(options: SocketServerOptions<Who>): SocketServer {
  const { server, path, WebSocketServer, mostConnections = CONNECTIONS_MOST, runtime = createRuntime() } = options
  const links = new Set<SocketLink>()
  let stopped = false
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: streamLimits.clientFrameBytes,
    // It would cost every connection more memory than all of its messages.
    perMessageDeflate: false,
    clientTracking: false,
    handleProtocols: (offered) => Object.values(streamProtocols).find((each) => offered.has(each)) ?? false,
  })

  function upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    if (pathOf(request) !== path) return
    const broken = () => socket.destroy()
    socket.on('error', broken)
    void decide(request).then((admission) => {
      socket.off('error', broken)
      if (socket.destroyed) return
      if (admission.kind === 'refused') return refuse(socket, admission.status, admission.reason)
      sockets.handleUpgrade(request, socket, head, (opened) =>
        openLink(opened, runtime, (link) => begin(link, admission.who)),
      )
    })
  }

  async function decide(request: IncomingMessage): Promise<Admission<Who>> {
    if (stopped) return { kind: 'refused', status: 503, reason: 'The server stops.' }
    if (links.size >= mostConnections) return { kind: 'refused', status: 503, reason: 'Too many are connected.' }
    try {
      return await options.admit(request, tokenOf(request))
    } catch {
      return { kind: 'refused', status: 503, reason: 'Authentication is not available; try again later.' }
    }
  }

  function begin(link: SocketLink, who: Who): Session {
    links.add(link)
    const session = options.begin(link, who)
    return {
      received: (data) => session.received(data),
      drained: () => session.drained(),
      closed() {
        links.delete(link)
        session.closed()
      },
    }
  }

  async function stop(): Promise<void> {
    stopped = true
    server.off('upgrade', upgrade)
    for (const link of links) link.close(closeCodes.unavailable, 'the server stops; come back, here or elsewhere')
    const deadlineMs = runtime.monotonicMs() + STOP_MS
    while (links.size > 0 && runtime.monotonicMs() < deadlineMs) await sleep(runtime, STOP_LOOK_MS)
    for (const link of links) link.cut()
    sockets.close()
  }

  server.on('upgrade', upgrade)
  return {
    get connections() {
      return links.size
    },
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

function pathOf({ url = '' }: IncomingMessage): string {
  const end = url.indexOf('?')
  return end < 0 ? url : url.slice(0, end)
}

function tokenOf({ headers }: IncomingMessage): string | null {
  const bearer = /^Bearer ([\x21-\x7e]{1,512})$/i.exec(headers.authorization ?? '')?.[1]
  if (bearer !== undefined) return bearer
  const offered = (headers['sec-websocket-protocol'] ?? '').split(',').map((each) => each.trim())
  const carried = offered.find((each) => each.startsWith(TOKEN_PREFIX))
  return carried === undefined ? null : Buffer.from(carried.slice(TOKEN_PREFIX.length), 'base64url').toString('utf8')
}

function refuse(socket: Duplex, status: number, reason: string): void {
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Refused'}`,
    'Content-Type: text/plain; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(reason)}`,
    'Connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${reason}`)
}
