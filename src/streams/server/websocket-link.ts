import type { Runtime } from '../../runtime/runtime.ts'
import { streamProtocols } from '../client/websocket.ts'
import { streamLimits } from '../limits.ts'
import type { Session, SessionLink } from '../ports.ts'
import type { ServerSocket } from './websocket-driver.ts'

/** A reason that RFC 6455 allows. */
const REASON_BYTES_MOST = 123
/** A peer that does not read does not answer a close either: after this the connection is cut. */
const CLOSE_MS = 2_000

export interface SocketLink extends SessionLink {
  /** At once, as if the network had broken. */
  cut(): void
}

/** Gives a connection to its session, and notifies the session when a slow peer can take more. */
export function openLink(socket: ServerSocket, runtime: Runtime, begin: (link: SocketLink) => Session): SocketLink {
  let over = false
  let full = false

  const format = socket.protocol === streamProtocols.binary ? 'binary' : 'json'

  const link: SocketLink = {
    format,
    get bufferedBytes() {
      return socket.bufferedAmount
    },
    send(data) {
      if (over) return
      socket.send(data, taken)
      if (socket.bufferedAmount >= streamLimits.linkBytes) full = true
    },
    close(code, reason) {
      if (over) return
      socket.close(code, fitting(reason))
      runtime.setTimer(CLOSE_MS, () => socket.terminate(), true)
    },
    cut: () => socket.terminate(),
  }
  const session = begin(link)

  /**
   * At half of the bound, so that a large buffer never runs dry; and when all is taken, whatever bound the region has.
   */
  function taken(): void {
    const mostBytes = full ? streamLimits.linkBytes / 2 : 0
    if (over || socket.bufferedAmount > mostBytes) return
    full = false
    session.drained()
  }

  socket.on('message', (data, isBinary) => {
    session.received(isBinary ? (data as Uint8Array) : String(data))
  })
  // What is too large or no WebSocket frame at all is closed by `ws`, with the code of RFC 6455; the close follows.
  socket.on('error', () => {})
  socket.on('close', () => {
    if (over) return
    over = true
    session.closed()
  })
  return link
}

function fitting(reason: string): string {
  const bytes = Buffer.from(reason)
  if (bytes.length <= REASON_BYTES_MOST) return reason
  return bytes
    .subarray(0, REASON_BYTES_MOST)
    .toString('utf8')
    .replace(/\ufffd+$/, '')
}
