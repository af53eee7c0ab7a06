import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { frontLimits } from './limits.ts'

/**
 * The responses that the client of a connection still waits for, in order. They stand on the connection: entries of a table
 * that come and go with every request cost more than the request's own work here.
 */
const unanswered = Symbol('onceonly.unanswered')

type Pipelined = Socket & { [unanswered]?: ServerResponse[] }

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
  const waiting = (socket as Pipelined)[unanswered] ?? watched(socket)
  const isCut = waiting.length >= frontLimits.pipelined
  waiting.push(response)
  if (isCut) {
    cut()
    socket.destroy()
    skipRest(socket)
    return false
  }
  response.once('close', answered)
  return true
}

/** Answers leave in the order of their requests, so that it is nearly always the first. */
function answered(this: ServerResponse): void {
  const waiting = (this.req.socket as Pipelined)[unanswered]
  const at = waiting?.indexOf(this) ?? -1
  if (at >= 0) waiting?.splice(at, 1)
}

function watched(socket: Pipelined): ServerResponse[] {
  const waiting: ServerResponse[] = []
  socket[unanswered] = waiting
  // Some versions of Node close only the response whose turn it is, and the others would hold their slots forever.
  socket.once('close', () => {
    for (const response of waiting.splice(0)) {
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
