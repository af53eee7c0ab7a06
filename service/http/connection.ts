import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'
import {
  connectionsMost,
  createPaceWatch,
  createShares,
  frontLimits,
  limitConnections,
  mayPipeline,
} from 'onceonly/http/limits'
import { SOCKET_PATH } from '../chat/socket.ts'
import type { Log } from '../logs.ts'
import { logUnrouted } from '../logs-unrouted.ts'
import { usualLines } from './headers.ts'
import { type Problem, problemBody, sendProblem, statusOf } from './problem.ts'

/** A head is a few hundred bytes: a client that takes longer for it takes a connection away from others. */
const HEADERS_MS = 10_000
/** How often Node looks for requests that take too long; they are cut at most this much later than promised. */
const LOOK_EVERY_MS = 1_000

/** Node's word for a request that ended before it was whole. */
const ENDED_EARLY = 'HPE_INVALID_EOF_STATE'
/** Node's word for a request that was not whole in time. */
const TOO_SLOW = 'ERR_HTTP_REQUEST_TIMEOUT'

/** How long a client may take for its request. Fastify alone would wait for a slow one forever. */
export function connectionLimits(requestTimeoutMs: number, log: Log) {
  return {
    requestTimeout: requestTimeoutMs,
    http: {
      headersTimeout: Math.min(HEADERS_MS, requestTimeoutMs),
      connectionsCheckingInterval: LOOK_EVERY_MS,
      // An offer to upgrade anything else is ignored.
      shouldUpgradeCallback: ({ url, headers }: IncomingMessage) =>
        headers.upgrade?.toLowerCase() === 'websocket' && url?.split('?')[0] === SOCKET_PATH,
    },
    clientErrorHandler: (error: Error & { readonly code?: string }, socket: Socket) => answerBroken(error, socket, log),
  }
}

/** A body that comes more slowly than this over all its time only keeps a connection open. */
const BYTES_PER_SECOND_LEAST = 16 * 1024

/** A request whose body may take longer than others, as long as bytes keep coming. */
interface LongBody {
  readonly startedMs: number
  /** What had come over the connection before. */
  readonly startBytes: number
  /** For how long nothing may come, and how long it may take before its speed counts. */
  readonly patienceMs: number
  watched: boolean
}

const longBodies = new WeakMap<IncomingMessage, LongBody>()
const paces = createPaceWatch(LOOK_EVERY_MS)

/** A large file over a slow line takes minutes: for this request it counts that bytes keep coming, not when they end. */
export function allowLongBody(request: IncomingMessage, patienceMs: number): void {
  const { bytesRead: startBytes } = request.socket
  longBodies.set(request, { startedMs: performance.now(), startBytes, patienceMs, watched: false })
}

/** Node has given the request up. Looks after it from here on, and says so when it has really come to a halt. */
function watchLongBody(request: IncomingMessage, long: LongBody, halted: () => void): void {
  if (long.watched) return
  long.watched = true
  const { socket } = request
  const graceMs = long.patienceMs - (performance.now() - long.startedMs)
  const stop = paces.watch({
    pace: { graceMs, bytesPerSecond: BYTES_PER_SECOND_LEAST, pauseMs: long.patienceMs },
    bytes: () => socket.bytesRead - long.startBytes,
    isHeld: () => false,
    tooSlow: halted,
  })
  request.once('end', stop)
  socket.once('close', stop)
}

interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

/** The last request of a connection. */
const exchanges = new WeakMap<Socket, Exchange>()

/** How long a connection on which nothing was ever said has left when the server ends: its first request may be on its way. */
const SILENT_MS = 200

/** @returns to be called when the server ends */
export function watchConnections(server: Server): () => void {
  const most = connectionsMost()
  limitConnections(server, createShares({ most: () => most, share: frontLimits.placeShare }))
  const silent = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    silent.add(socket)
    socket.once('close', () => silent.delete(socket))
  })
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    silent.delete(request.socket)
    exchanges.set(request.socket, { request, response })
  })
  limitPipelining(server)
  // Browsers open connections in advance. Node does not count them as idle, and would wait for them for a minute.
  return () => {
    if (silent.size === 0) return
    setTimeout(() => {
      for (const socket of silent) if (socket.bytesRead === 0) socket.destroy()
    }, SILENT_MS)
  }
}

/** Stands before everything that listens to requests by now, above all before Fastify: nothing of a refused one begins. */
function limitPipelining(server: Server): void {
  const listeners = server.listeners('request') as ((request: IncomingMessage, response: ServerResponse) => void)[]
  server.removeAllListeners('request')
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    if (!mayPipeline(request, response)) return
    for (const listen of listeners) listen.call(server, request, response)
  })
}

/** What was answered past the response of a request whose body never came whole. */
interface Refusal {
  readonly problem: Problem
  /** It ended in the middle: whether the client still reads cannot be seen from here. */
  readonly hungUp: boolean
}

const refusals = new WeakMap<ServerResponse, Refusal>()

export function refusalOf(response: ServerResponse): Refusal | null {
  return refusals.get(response) ?? null
}

/** Node could not continue a request; one with a long body may only need more time. */
function answerBroken(error: Error & { readonly code?: string }, socket: Socket, log: Log): void {
  if (error.code === 'ECONNRESET' || socket.destroyed) return
  const { request } = exchanges.get(socket) ?? {}
  const long = error.code === TOO_SLOW && request !== undefined ? longBodies.get(request) : undefined
  if (request !== undefined && long !== undefined) {
    return watchLongBody(request, long, () => refuseBroken(error, socket, log))
  }
  refuseBroken(error, socket, log)
}

/** Answers what is no request at all, or not a whole one. No route has seen it, or only its head. */
function refuseBroken(error: Error & { readonly code?: string }, socket: Socket, log: Log): void {
  if (socket.destroyed) return
  const { request, response } = exchanges.get(socket) ?? {}
  if (response !== undefined && request?.complete === true && !response.writableFinished) {
    // Only what follows a whole request is broken. The request itself is carried out, so a refusal would be a lie.
    response.once('close', () => socket.destroy())
    return
  }
  const halfRead = request?.complete === false ? response : undefined
  // An answer that has begun, or was given before the body had come, cannot be taken back: a second one would be read as
  // the answer to the next request.
  if (socket.writable && halfRead?.headersSent !== true) {
    const problem = problemOf(error.code ?? '')
    if (halfRead === undefined) logUnrouted(log, null, problem)
    else refusals.set(halfRead, { problem, hungUp: error.code === ENDED_EARLY })
    socket.write(written(problem))
  }
  socket.destroy(error)
}

function written(problem: Problem): string {
  const body = problemBody(problem)
  const status = statusOf(problem)
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Content-Type: application/problem+json; charset=utf-8',
    ...usualLines,
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
    '',
    body,
  ].join('\r\n')
}

/** By the names that Node and its parser give to errors: which part of the request is to blame, and why. */
const faults: Readonly<Record<string, readonly [field: string, detail: string]>> = {
  HPE_INVALID_CONTENT_LENGTH: ['Content-Length', 'is not a whole number'],
  HPE_UNEXPECTED_CONTENT_LENGTH: ['Content-Length', 'stands there twice'],
  HPE_INVALID_TRANSFER_ENCODING: ['Transfer-Encoding', 'cannot be read, or stands beside Content-Length'],
  HPE_INVALID_CHUNK_SIZE: ['body', 'is not chunked as its Transfer-Encoding says'],
  [ENDED_EARLY]: ['body', 'ended before it was whole'],
  HPE_INVALID_HEADER_TOKEN: ['headers', 'hold a character that no header may hold'],
}

function problemOf(code: string): Problem {
  switch (code) {
    case TOO_SLOW: {
      const errors = [{ field: 'body', detail: 'did not arrive whole in time' }]
      const detail = 'The request did not arrive whole in time; nothing was done.'
      return { name: 'request-timeout', detail, errors }
    }
    case 'HPE_HEADER_OVERFLOW': {
      const errors = [{ field: 'headers', detail: 'are too large' }]
      return { name: 'headers-too-large', detail: 'The headers are too large.', errors }
    }
    default: {
      const [field, why] = faults[code] ?? ['request', 'is not HTTP']
      const errors = [{ field, detail: why }]
      return { name: 'bad-request', detail: `${field} ${why}.`, errors }
    }
  }
}

/** Of these Node keeps the first and drops the others without a word; another server in the way may do the opposite. */
const SINGLE_HEADERS = ['Authorization', 'Content-Type', 'Host'] as const

/** A hook: who says two things at once has not said who it is, or what it sends. */
export async function refuseRepeatedHeaders(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
  const { headersDistinct } = request.raw
  const repeated = SINGLE_HEADERS.filter((name) => (headersDistinct[name.toLowerCase()]?.length ?? 0) > 1)
  if (repeated.length === 0) return undefined
  const errors = repeated.map((field) => ({ field, detail: 'stands there more than once' }))
  const detail = `${repeated.join(' and ')} must stand there once.`
  return sendProblem(reply, { name: 'repeated-header', detail, errors })
}
