import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { frontLimits } from './limits.ts'

/** By connection, the responses that its client still waits for. */
const unanswered = new WeakMap<Socket, Set<ServerResponse>>()

/**
 * Whether a request may begin: its connection is cut when it has too many that are not answered yet. Node hands over all
 * requests of a packet before another connection has a turn.
 *
 * @param cut called for the first request past the bound; its response is closed afterwards like the others
 */
export function mayPipeline(
  { socket }: IncomingMessage,
  response: ServerResponse,
  cut: () => void = () => {},
): boolean {
  if (socket.destroyed) return false
  const waiting = unanswered.get(socket) ?? watched(socket)
  const isCut = waiting.size >= frontLimits.pipelined
  waiting.add(response)
  if (isCut) {
    cut()
    socket.destroy()
    skipRest(socket)
    return false
  }
  response.once('close', () => waiting.delete(response))
  return true
}

function watched(socket: Socket): Set<ServerResponse> {
  const waiting = new Set<ServerResponse>()
  unanswered.set(socket, waiting)
  // Some versions of Node close only the response whose turn it is, and the others would hold their slots forever.
  socket.once('close', () => {
    for (const response of waiting) {
      if (response.closed || response.socket !== null) continue
      Object.assign(response, { destroyed: true, _closed: true })
      response.emit('close')
    }
  })
  return waiting
}

/** As the parser of Node takes it: an upgrade follows, and nothing more is HTTP. */
const NO_MORE_HTTP = 2

/**
 * Past its public interface, because nothing public stops Node's parser in the middle of a packet: two thousand requests
 * that are dropped one by one take 40 ms, skipped ones take 1. Where a version of Node has no such member, they are dropped.
 */
function skipRest(socket: Socket & { readonly parser?: { onIncoming?: unknown } | null }): void {
  if (typeof socket.parser?.onIncoming === 'function') socket.parser.onIncoming = () => NO_MORE_HTTP
}
