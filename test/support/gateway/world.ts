import { once } from 'node:events'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import type { Ledger, Store } from 'onceonly'
import { createLedger, limits } from 'onceonly'
import type { GatewayConfig, GatewayEvent, GatewayLoad, Metrics, RouteRule } from 'onceonly/gateway'
import { createGateway } from 'onceonly/gateway'
import { memoryStore } from 'onceonly/memory'
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts'
import type { AskOptions } from './ask.ts'
import { ask } from './ask.ts'

/** A request as a plain service saw it. */
export interface Seen {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

/** A service that knows nothing of keys, and counts. */
export interface Counting {
  readonly port: number
  readonly url: string
  /** Requests that arrived, whole or not. */
  readonly heads: number
  /** Requests that arrived whole. */
  readonly seen: readonly Seen[]
}

type Answerer = (request: IncomingMessage, response: ServerResponse, seen: Seen) => unknown

const plain: Answerer = (_request, response, { body }) => {
  response.writeHead(201, { 'content-type': 'application/json', location: '/things/1' }).end(`{"got":${body.length}}`)
}

export async function openCounting(context: TestContext, answer: Answerer = plain): Promise<Counting> {
  const seen: Seen[] = []
  let heads = 0
  const server = createServer((request, response) => {
    heads++
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => void chunks.push(chunk))
    request.on('error', () => {})
    request.on('end', () => {
      const { method = '', url = '', headers } = request
      const one = { method, url, headers, body: Buffer.concat(chunks).toString() }
      seen.push(one)
      void answer(request, response, one)
    })
  })
  const port = await listening(context, server)
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    seen,
    get heads() {
      return heads
    },
  }
}

export async function openServer(context: TestContext, listener: RequestListener): Promise<string> {
  return `http://127.0.0.1:${await listening(context, createServer(listener))}`
}

export async function listening(context: TestContext, server: ReturnType<typeof createServer>): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  context.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return (server.address() as AddressInfo).port
}

export interface World {
  readonly port: number
  readonly ledger: Ledger<unknown>
  /** What it has under way. */
  readonly load: GatewayLoad
  /** The events of the gateway. */
  readonly events: readonly GatewayEvent[]
  ask(options?: AskOptions): ReturnType<typeof ask>
  advance(ms: number): Promise<void>
  /** Drains, as at the end of the test. */
  stop(): Promise<void>
}

/** A usual rule: by default the upstream's body is replayed to every caller. */
export const things: RouteRule = {
  method: 'POST',
  path: '/things',
  caller: 'shared',
  key: 'required',
  replay: 'trusted',
}

/** Without a key the content is the key. The deadline is the longest that a rule accepts, for busy machines. */
export const guarded = { ...things, key: 'optional', content: { decideMs: limits.storeCallMs } } as const

/** The deadlines of a content, which pass when a test says so: so a busy machine misses none by accident. */
export interface HeldDeadlines {
  /** For the ledger. Its clock is stopped, so that a call to the store is never given up for its age. */
  readonly runtime: Runtime
  /** How many were ever set. */
  readonly set: number
  /** How many are neither past nor cleared. */
  readonly left: number
  pass(): void
}

export function holdDeadlines(deadlineMs: number): HeldDeadlines {
  const runtime = createRuntime()
  const held = new Set<() => void>()
  let set = 0
  return {
    get set() {
      return set
    },
    get left() {
      return held.size
    },
    pass() {
      for (const fire of held) fire()
      held.clear()
    },
    runtime: {
      ...runtime,
      monotonicMs: () => 0,
      setTimer(ms, fire, background) {
        if (ms !== deadlineMs) return runtime.setTimer(ms, fire, background)
        set++
        held.add(fire)
        return { cancel: () => void held.delete(fire) }
      },
    },
  }
}

export async function openGateway(
  context: TestContext,
  upstream: string,
  routes: readonly RouteRule[] = [things],
  config: GatewayConfig = {},
  /** A store that behaves badly. */
  wrap: (store: Store) => Store = (store) => store,
  metrics?: Metrics,
  runtime: Runtime = createRuntime(),
): Promise<World> {
  const store = memoryStore({ testClock: true })
  const ledger = createLedger({ store: wrap(store), background: false, runtime })
  const events: GatewayEvent[] = []
  const on = (event: GatewayEvent) => void events.push(event)
  const gateway = createGateway({
    config: { upstream, routes, ...config },
    ledger,
    drainMs: 100,
    on,
    ...(metrics === undefined ? {} : { metrics }),
  })
  const { port } = await gateway.listen(0)
  context.after(async () => {
    await gateway.stop()
    await ledger.stop()
    await store.stop()
  })
  return {
    port,
    ledger,
    events,
    get load() {
      return gateway.load
    },
    ask: (options) => ask(port, options),
    advance: (ms) => store.clock.advance(ms, { timeoutMs: 60_000 }),
    stop: () => gateway.stop(),
  }
}
