import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import { type Connection, createConnection } from './connection.ts'
import type { Weather } from './lane.ts'
import { CONNECTIONS_MAX, DELAY_MAX_MS } from './limits.ts'

/** A network that fails on demand, between a client and a server on this machine. */
export interface Proxy {
  readonly port: number
  /** How many connections are open. */
  readonly connections: number
  /** How long each piece is held back, in each direction: a round trip takes twice as long. */
  delayMs: number
  /** The same URL, leading through the proxy. */
  rewrite(url: string): string
  /** Nothing moves in either direction, but all connections stay open, and new ones are accepted. */
  pause(): void
  resume(): void
  /** Breaks every connection. */
  cut(): void
  /** Requests still reach the server; the next answer on each present connection is lost, and then the connection. */
  cutResponses(): void
  /**
   * Lets the next request (or the next for which `when` says yes) through to the server, loses the answer and breaks
   * that connection. A request is one piece of what the client wrote: a pipelining client loses more than one answer.
   */
  dropNextResponse(options?: { readonly when?: (request: Buffer) => boolean }): void
  /** New connections are refused, as by a server that is not running. Present ones continue. */
  refuse(): void
  /** New connections are welcome again, on the same port. */
  accept(): Promise<void>
  stop(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

export interface ProxyOptions {
  /** A loopback address: this is a tool for tests. */
  readonly targetHost?: string
  readonly targetPort: number
  /**
   * Given the last bytes of an answer that is being lost: is it complete? `endsPostgresAnswer` is one. Without it a
   * short silence counts as the end, which is too early for a server that pauses in the middle of a long answer.
   */
  readonly endsAnswer?: (tail: Buffer) => boolean
}

const HOST = '127.0.0.1'
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|::1)$/

export { endsPostgresAnswer } from './postgres.ts'

export async function createProxy({ targetHost = HOST, targetPort, endsAnswer }: ProxyOptions): Promise<Proxy> {
  if (!LOOPBACK.test(targetHost)) throw new Error(`A test proxy leads to loopback only, not to ${targetHost}.`)

  const weather: Weather = { paused: false, delayMs: 0 }
  const connections = new Set<Connection>()
  let losesAnswerTo: ((request: Buffer) => boolean) | undefined

  function listen(port: number): Promise<Server> {
    const listener = createServer({ allowHalfOpen: true }, (client) => {
      const connection = createConnection({
        client,
        target: { host: targetHost, port: targetPort },
        weather,
        losesAnswerTo(request) {
          if (losesAnswerTo === undefined || !losesAnswerTo(request)) return false
          losesAnswerTo = undefined
          return true
        },
        endsAnswer,
        onClose: (closed) => connections.delete(closed),
      })
      connections.add(connection)
    })
    listener.maxConnections = CONNECTIONS_MAX
    return once(listener.listen(port, HOST), 'listening').then(() => listener)
  }

  let listener: Server | undefined = await listen(0)
  const port = portOf(listener)

  const flush = () => connections.forEach((connection) => connection.flush())
  const cut = () => connections.forEach((connection) => connection.cut())
  function refuse(): void {
    listener?.close()
    listener = undefined
  }
  async function stop(): Promise<void> {
    const closed = listener?.listening ? once(listener, 'close') : undefined
    refuse()
    cut()
    await closed
  }

  return {
    port,
    get connections() {
      return connections.size
    },
    get delayMs() {
      return weather.delayMs
    },
    set delayMs(delayMs: number) {
      if (!(delayMs >= 0 && delayMs <= DELAY_MAX_MS)) throw new Error(`A delay is from 0 to ${DELAY_MAX_MS} ms.`)
      weather.delayMs = delayMs
    },
    rewrite(url) {
      const rewritten = new URL(url)
      rewritten.hostname = HOST
      rewritten.port = String(port)
      return rewritten.href
    },
    pause() {
      weather.paused = true
    },
    resume() {
      weather.paused = false
      flush()
    },
    cut,
    cutResponses: () => connections.forEach((connection) => connection.loseAnswer()),
    dropNextResponse({ when = () => true } = {}) {
      losesAnswerTo = when
    },
    refuse,
    async accept() {
      listener ??= await listen(port)
    },
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

function portOf(listener: Server): number {
  const address = listener.address()
  if (address === null || typeof address === 'string') throw new Error('The proxy listens on no port.')
  return address.port
}
