import type { AgentOptions, ClientRequest, IncomingMessage, RequestOptions } from 'node:http'
import { Agent as HttpAgent, request as httpRequest } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import type { Duplex } from 'node:stream'
import { createRuntime } from '../../runtime/runtime.ts'
import { frontLimits } from '../front/limits.ts'
import type { Shares } from '../front/shares.ts'
import { createShares } from '../front/shares.ts'
import { connectWithin, placeOf } from '../region/connecting.ts'
import { gatewayLimits } from './limits.ts'

/** One service behind the gateway, with its pool of connections. */
export interface Upstream {
  /** As configured, for the `Host` header. */
  readonly host: string
  /** Requests that are under way at it. The pool has no queue: a request with a place gets a connection at once. */
  readonly places: Shares
  /** On a place that was taken, except for an `own` connection. */
  open(head: RequestHead, on: ConnectionChoice): ClientRequest
  stop(): void
}

/**
 * `pooled`: any that is free. `fresh`: none that the other side may be closing at this moment. `own`: a new one, which no
 * other request gets.
 */
export type ConnectionChoice = 'pooled' | 'fresh' | 'own'

export interface RequestHead {
  readonly method: string
  readonly target: string
  readonly headers: string[]
}

/** The outcome of a request that must not be sent twice. */
export type Sent =
  | { readonly kind: 'answered'; readonly answer: IncomingMessage }
  /** Not one byte has left: it can be sent again. */
  | { readonly kind: 'not-sent'; readonly error: Error }
  /** Bytes may have left, and no response came: it may have happened. */
  | { readonly kind: 'broken'; readonly error: Error; readonly late: boolean }

/** Since when a pooled connection is idle. It stands on the connection: a table that holds them weakly costs more. */
const idleSince = Symbol('onceonly.idleSince')

type Pooled = Duplex & { [idleSince]?: number }

/** @param ca certificates to trust instead of the usual ones, as PEM */
export function createUpstream(address: string, ca?: string): Upstream {
  const url = new URL(address)
  const secure = url.protocol === 'https:'
  const prefix = url.pathname.replace(/\/$/, '')
  const pool: AgentOptions = {
    keepAlive: true,
    timeout: gatewayLimits.keepAliveMs,
    // The newest is the least likely to be closed, and the others may go.
    scheduling: 'lifo',
  }
  const trust = ca === undefined ? {} : { ca }
  const agent = secure ? new HttpsAgent({ ...pool, ...trust }) : new HttpAgent(pool)
  const keep = agent.keepSocketAlive.bind(agent) as (socket: Duplex) => unknown
  Object.assign(agent, {
    keepSocketAlive(socket: Pooled) {
      socket[idleSince] = performance.now()
      return keep(socket)
    },
  })
  // The pool's limit for idle connections is none for a request that thinks.
  const common: RequestOptions = { ...placeOf(url), agent, setHost: false, timeout: 0 }
  const request = secure ? httpsRequest : httpRequest

  const { upstreamSockets, upstreamQueue, upstreamQueueMs } = gatewayLimits
  return {
    host: url.host,
    places: createShares({
      most: () => upstreamSockets,
      share: frontLimits.placeShare,
      queue: { most: upstreamQueue, waitMs: upstreamQueueMs, runtime: createRuntime() },
    }),
    open({ method, target, headers }, on) {
      if (on === 'fresh') dropStale(agent)
      const path = target === '*' ? target : prefix + target
      const from = on === 'own' ? { ...common, ...trust, agent: false } : common
      return request({ ...from, method, path, headers: headers as never })
    },
    stop: () => agent.destroy(),
  }
}

/** The oldest stand first, and a pool skips what is destroyed. */
function dropStale(agent: HttpAgent): void {
  const now = performance.now()
  for (const sockets of Object.values(agent.freeSockets)) {
    for (const socket of (sockets ?? []) as readonly Pooled[]) {
      if (now - (socket[idleSince] ?? 0) <= gatewayLimits.freshMs) break
      socket.destroy()
    }
  }
}

/** Waits for a place; false where there is none in time, or the request has ended. */
export function placeAt({ places }: Upstream, key: string, signal?: AbortSignal): boolean | Promise<boolean> {
  if (places.enter(key)) return true
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const stopWaiting = places.whenFree(
    key,
    () => resolve(true),
    () => resolve(false),
  )
  const leave = () => {
    stopWaiting()
    resolve(false)
  }
  signal?.addEventListener('abort', leave, { once: true })
  return promise.finally(() => signal?.removeEventListener('abort', leave))
}

/**
 * The request has a place from now on until it is over.
 *
 * @returns moves it to a place elsewhere, if there is one
 */
export function keepPlace(request: ClientRequest, places: Shares, key: string): (elsewhere: Shares) => boolean {
  let now = places
  request.once('close', () => now.leave(key))
  return (elsewhere) => {
    if (!elsewhere.enter(key)) return false
    now.leave(key)
    now = elsewhere
    return true
  }
}

export interface SendTimes {
  readonly connectMs: number
  readonly answerMs: number
  readonly idleMs: number
}

/**
 * Sends a request once, and returns its outcome. Until a connection is made nothing can have left; from then on the outcome
 * of an error is unknown, whatever its code.
 *
 * @param write hands the body over and ends the request
 */
export function send(request: ClientRequest, times: SendTimes, write: () => void, signal?: AbortSignal): Promise<Sent> {
  const { promise, resolve } = Promise.withResolvers<Sent>()
  let left = false
  let late = false
  let isOver = false
  let timer: NodeJS.Timeout | undefined
  const giveUp = () => {
    late = true
    request.destroy(new Error(`No answer within ${times.answerMs} ms.`))
  }
  const abandon = () => request.destroy(new Error('The lease ended.'))

  function end(sent: Sent): void {
    isOver = true
    clearTimeout(timer)
    signal?.removeEventListener('abort', abandon)
    resolve(sent)
  }

  connectWithin(request, times.connectMs, () => {
    left = true
    timer = setTimeout(giveUp, times.answerMs)
  })
  request.once('response', (answer) => {
    cutWhenIdle(request, times.idleMs)
    end({ kind: 'answered', answer })
  })
  refuseSwitch(request, (error) => end({ kind: 'broken', error, late }))
  request.on('error', (error) => end(left ? { kind: 'broken', error, late } : { kind: 'not-sent', error }))
  request.once('close', () => {
    // An error takes microseconds to make, and nearly every request is answered by now.
    if (!isOver) end({ kind: left ? 'broken' : 'not-sent', error: new Error('The connection closed.'), late })
  })
  signal?.addEventListener('abort', abandon, { once: true })
  write()
  return promise
}

/** A protocol switch that was not requested is not a response that could be forwarded. */
export function refuseSwitch(request: ClientRequest, refused: (error: Error) => void): void {
  request.once('upgrade', (_answer, socket) => {
    // Only the gateway has this connection now, and an unhandled error event ends the process.
    socket.on('error', () => {}).destroy()
    refused(new Error('The upstream switched protocols.'))
  })
}

/** Cuts a response that stalls, so that no client waits forever for the rest of it. */
export function cutWhenIdle(request: ClientRequest, idleMs: number): void {
  request.setTimeout(idleMs, () => request.destroy(new Error(`Nothing of the answer came for ${idleMs} ms.`)))
}
