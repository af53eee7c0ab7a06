import type { OutgoingHttpHeaders } from 'node:http'
import { ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { Writable } from 'node:stream'
import { sendAnswer } from './capture-node.ts'
import type { Early } from './early.ts'

/**
 * Answers 202 past the handler's response, when the caller has waited long enough and nothing of that response has left.
 * The handler and its framework notice nothing: they write to the end, as to a client that reads everything.
 * HTTP/2, and responses that stand on no socket, as in tests by injection, are answered by their handler.
 *
 * @param before headers that were set before the handler ran, and belong to every answer
 */
export function answerEarly(response: unknown, early: Early | null, before?: OutgoingHttpHeaders): void {
  if (early === null || !(response instanceof ServerResponse)) return
  const headers = before ?? response.getHeaders()
  const leave = () => {
    const socket = socketToLeave(response)
    const answer = socket === null ? null : early.answer()
    if (socket === null || answer === null) return
    const accepted = takeSocket(response, socket)
    for (const [name, value] of Object.entries(headers)) if (value !== undefined) accepted.setHeader(name, value)
    sendAnswer(accepted, answer)
  }
  if (early.waitMs === 0) return leave()
  const timer = setTimeout(leave, early.waitMs).unref()
  response.once('close', () => clearTimeout(timer))
}

/** Null where the answer has begun, the client has left, or the rest of the request is still to come over it. */
function socketToLeave(response: ServerResponse): Socket | null {
  const { socket, req: request } = response
  if (!(socket instanceof Socket) || !socket.writable || response.headersSent || response.writableEnded) return null
  return request.complete && request.readableLength === 0 ? socket : null
}

/**
 * Gives the socket to a second response, after which it is closed: the server keeps its requests in order by the first
 * one, so that it could not take another request from this connection.
 */
function takeSocket(response: ServerResponse, socket: Socket): ServerResponse {
  const { req: request } = response
  // A handler may ask for it later: a socket knows it after its end only if it was read before.
  void socket.remoteAddress
  // A request without a body that was not read would count as aborted when its connection ends.
  request.resume()
  response.detachSocket(socket)
  const accepted = new ServerResponse(request)
  accepted.shouldKeepAlive = false
  accepted.once('finish', () => socket.destroySoon())
  accepted.assignSocket(socket)
  const nowhere = createNowhere()
  const { detachSocket } = response
  // At its end the server takes the first socket from the response, and closes it after the last answer.
  response.detachSocket = () => {
    Object.assign(response, { _last: true })
    detachSocket.call(response, nowhere)
  }
  response.assignSocket(nowhere)
  return accepted
}

/** A socket that takes everything at once, and drops it. */
function createNowhere(): Socket {
  const nowhere = new Writable({
    highWaterMark: Number.MAX_SAFE_INTEGER,
    write: (_chunk, _encoding, done) => done(),
  })
  nowhere.on('error', () => {})
  // Responses hand their time limit to the socket.
  return Object.assign(nowhere, { setTimeout: () => nowhere }) as unknown as Socket
}
