import { BaseError } from '../../ledger/core/base-error.ts'
import type { FrameFormat } from '../protocol/codec.ts'
import type { ClientLink, ClientTransport, LinkEvents } from './ports.ts'

/** The subprotocols of our frames. JSON is for people who read along. */
export const streamProtocols = { binary: 'onceonly.v1+bin', json: 'onceonly.v1+json' } as const satisfies Record<
  FrameFormat,
  string
>
/**
 * Browsers can send no header with a WebSocket, so the token travels as a subprotocol that the server never selects.
 */
export const TOKEN_PREFIX = 'onceonly.token.'

/** What is used of a WebSocket as browsers, Node from 22 on, and `ws` have it. */
export interface ClientSocket {
  readonly readyState: number
  /** The subprotocol that the server selected. */
  readonly protocol: string
  binaryType: string
  onopen: (() => void) | null
  onmessage: ((event: { readonly data: unknown }) => void) | null
  onclose: ((event: { readonly code: number; readonly reason: string }) => void) | null
  onerror: (() => void) | null
  send(data: string | Uint8Array): void
  close(code?: number, reason?: string): void
}

export type ClientSocketClass = new (url: string, protocols: string[]) => ClientSocket

export interface WebSocketTransportOptions {
  /** Where a region is reached: `wss://…`. */
  url(region: string): string
  /** Asked for each connection, so that a token may be renewed; where it fails, the client tries again later. @default none */
  readonly token?: () => string | null | Promise<string | null>
  /** How frames are written. JSON can be read in the tools of a browser, and takes ten times as many bytes. @default 'binary' */
  readonly frames?: FrameFormat
  /** Left out: the global one, which browsers and Node have. @default the global one */
  readonly WebSocket?: ClientSocketClass
  /** A connection that has not opened by then has failed. @default 10_000 */
  readonly openMs?: number
}

/** Longer than a slow handshake over a slow link, shorter than people wait. */
const OPEN_MS = 10_000
const OPEN = 1
/** RFC 6455: the connection ended without a close frame. */
const NO_CLOSE_FRAME = 1006
const NORMAL = 1000

/**
 * Connections of a client, in browsers and in Node: the WebSocket that both have.
 *
 * @example
 * ```ts
 * import { createWebSocketTransport } from 'onceonly/stream'
 *
 * export const transport = createWebSocketTransport({
 *   url: (region) => `wss://${region}.example.com/socket`,
 *   token: () => sessionToken,
 * })
 * const sessionToken = 'secret'
 * ```
 */
export function createWebSocketTransport(options: WebSocketTransportOptions): ClientTransport {
  if (typeof options?.url !== 'function') {
    refuse('url', 'needs `url`: a function of the region, such as () => `wss://example.com/socket`')
  }
  const { url, token = () => null, frames = 'binary', openMs = OPEN_MS } = options
  if (!Object.hasOwn(streamProtocols, frames)) refuse('frames', "takes 'binary' or 'json' as `frames`")
  // A server that does not speak the first takes the other one.
  const spoken = frames === 'json' ? [streamProtocols.json] : Object.values(streamProtocols)
  const WebSocketClass = options.WebSocket ?? (globalThis as unknown as { WebSocket: ClientSocketClass }).WebSocket

  function connect(region: string, events: LinkEvents): ClientLink {
    let socket: ClientSocket | null = null
    let over = false
    const late = setTimeout(() => end(null, 'the connection did not open in time'), openMs)

    function end(code: number | null, reason: string): void {
      if (over) return
      over = true
      clearTimeout(late)
      try {
        socket?.close(NORMAL)
      } catch {
        // One that never opened has nothing to close.
      }
      events.closed(code, reason)
    }

    function open(carried: string | null): void {
      if (over) return
      const protocols = [...spoken, ...(carried === null ? [] : [TOKEN_PREFIX + base64Url(carried)])]
      const opening = new WebSocketClass(url(region), protocols)
      socket = opening
      opening.binaryType = 'arraybuffer'
      opening.onopen = () => {
        clearTimeout(late)
        if (!over) events.opened(opening.protocol === streamProtocols.binary ? 'binary' : 'json')
      }
      opening.onmessage = ({ data }) => {
        if (!over) events.received(typeof data === 'string' ? data : new Uint8Array(data as ArrayBuffer))
      }
      opening.onclose = ({ code, reason }) => end(code === NO_CLOSE_FRAME ? null : code, reason)
      // The close follows, and says more; not everywhere when the connection never opened.
      opening.onerror = () => {
        if (opening.readyState !== OPEN) end(null, 'the connection failed')
      }
    }

    // Nothing is reported before `connect` has returned.
    Promise.resolve()
      .then(token)
      .then(open)
      .catch((error: unknown) => end(null, `the connection failed: ${String(error)}`))
    return {
      send(data) {
        if (!over && socket?.readyState === OPEN) socket.send(data)
      },
      close: () => end(NORMAL, ''),
    }
  }

  return { connect }
}

function refuse(option: string, what: string): never {
  throw new BaseError('bad_option', `createWebSocketTransport ${what}.`, { details: { option } })
}

function base64Url(text: string): string {
  const bytes = new TextEncoder().encode(text)
  const binary = Array.from(bytes, (byte) => String.fromCharCode(byte)).join('')
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}
