import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import { Server as NetServer } from 'node:net'
import type { Duplex } from 'node:stream'
import { OnceError } from '../../ledger/core/errors.ts'
import { SECOND } from '../../ledger/core/limits.ts'
import { GUARD_PREFIX } from '../../ledger/guard/content-key.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { clientKey } from '../front/addresses.ts'
import { limitConnections } from '../front/connections.ts'
import { mayPipeline } from '../front/pipelining.ts'
import { retryAfterMs } from '../front/retry.ts'
import { sendAnswer } from '../protocol/capture-node.ts'
import type { ServedRoute } from '../protocol/describe.ts'
import type { Answer } from '../protocol/exchange.ts'
import { jsonAnswer } from '../protocol/exchange.ts'
import { listen } from '../protocol/listen.ts'
import { notKept, setOwnHeaders } from '../protocol/own-headers.ts'
import { problemPage } from '../protocol/problem-page.ts'
import { createProblemWriter, type ProblemWriter } from '../protocol/problem-writer.ts'
import { createRegionRouter } from '../region/region.ts'
import { checkGatewayConfig } from './check.ts'
import type { GatewayConfig, RouteRule } from './config.ts'
import type { GatewayConsole, OpenConsole } from './console.ts'
import { declaresBody, whyMisframed } from './framing.ts'
import type { GatewayLoad } from './intake.ts'
import { createFront, hasContent, loadOf, takeIn, tooBusy } from './intake.ts'
import { gatewayDefaults, gatewayLimits } from './limits.ts'
import type { Metrics, MetricsOptions } from './metrics.ts'
import { metricsAnswer } from './metrics.ts'
import type { Pass } from './pass.ts'
import { passOn } from './pass.ts'
import { protect } from './protected.ts'
import type { Rule } from './rule.ts'
import { passingOf, readRule, ruleOfRequest, timesOf } from './rule.ts'
import type { TellStatus } from './status.ts'
import { createTellStatus } from './status.ts'
import { createTokens } from './tokens.ts'
import { passUpgrade } from './upgrade.ts'
import type { Upstream } from './upstream.ts'
import { createUpstream } from './upstream.ts'
import type { GatewayEvent, Note } from './watch.ts'
import { watchRequest } from './watch.ts'

/** A server that makes the services behind it safe to retry. */
export interface Gateway {
  listen(port: number, host?: string): Promise<Listening>
  /** How much is under way now. */
  readonly load: GatewayLoad
  /** Accepts nothing new, answers what is under way, and ends. Ledger and store stay open: they are yours. */
  stop(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

interface Place {
  readonly port: number
  readonly host: string
}

export interface Listening extends Place {
  /** Null without a console. `token`: the generated one, when none was configured; print it for the operator. */
  readonly console: (Place & { readonly token: string | null }) | null
}

export interface GatewayOptions {
  /** As `onceonly gateway` reads it from a file. */
  readonly config: GatewayConfig
  /** Keeps the records of keys and contents. */
  readonly ledger: Ledger<unknown>
  /** Rejects while the store cannot be asked; looked at for readiness. @default always ready */
  readonly ready?: () => Promise<unknown>
  /** How long `stop` lets running requests end, in milliseconds. @default 30 seconds */
  readonly drainMs?: number
  /** Called for every request and every duplicate content: for an access log and metrics. @default none */
  readonly on?: (event: GatewayEvent) => void
  /**
   * What Prometheus reads below the gateway's own path, from this machine or with the token of the configuration.
   * @default none
   */
  readonly metrics?: Metrics
  /** Opens its console, where the configuration has one: `gatewayConsole` of `onceonly/console`. @default none */
  readonly console?: GatewayConsole
  /** Gets errors that no client sees. @default console.error */
  readonly onError?: (error: unknown) => void
}

const OWN_PATH = '/.onceonly'

/**
 * A server in front of services that must not be changed: what it forwards is safe to retry.
 *
 * @example
 * ```ts
 * import { createLedger } from 'onceonly'
 * import { createGateway } from 'onceonly/gateway'
 * import { sqliteStore } from 'onceonly/sqlite'
 *
 * const gateway = createGateway({
 *   config: {
 *     upstream: 'http://127.0.0.1:8080',
 *     routes: [{ method: 'POST', path: '/v1/charges', key: 'required' }],
 *   },
 *   ledger: createLedger({ store: sqliteStore('gateway.db') }),
 * })
 * await gateway.listen(4100)
 * ```
 */
export function createGateway(options: GatewayOptions): Gateway {
  if (typeof options?.config !== 'object') {
    throw new OnceError('bad_option', 'createGateway needs a `config`: at least { upstream, routes }.')
  }
  const config = checkGatewayConfig(options.config)
  const { onError = (error: unknown) => console.error(error) } = options
  const { ownPath = OWN_PATH } = config
  const upstreams = new Map<string | undefined, Upstream>()
  if (config.upstream !== undefined) upstreams.set(undefined, createUpstream(config.upstream, config.ca))
  for (const [name, url] of Object.entries(config.upstreams ?? {})) upstreams.set(name, createUpstream(url, config.ca))
  const upstreamOf = (name: string | undefined) => {
    const found = upstreams.get(name)
    if (found === undefined) throw new OnceError('bad_option', `There is no upstream \`${name}\`.`)
    return found
  }
  const problemOptions = {
    operationsPath: `${ownPath}/operations`,
    problemBase: config.problemBase ?? `${ownPath}/problems`,
  }
  const region = config.region === undefined ? undefined : createRegionRouter(config.region)
  const tokens = config.jwks === undefined ? null : createTokens(config.jwks, onError)
  const rules = (config.routes ?? []).map((rule) =>
    readRule(rule, { config, ledger: options.ledger, problems: problemOptions, upstreamOf, region, tokens, onError }),
  )
  const problems = createProblemWriter(problemOptions)
  const fallback = upstreams.get(undefined)
  const pass: Pass | null =
    fallback === undefined
      ? null
      : { upstream: fallback, passing: passingOf(config), times: timesOf(config.timeouts), problems }
  const status = createTellStatus(
    rules,
    { ledger: options.ledger, onError, ...problemOptions, ...(region === undefined ? {} : { region }) },
    tokens,
  )
  const links = [...upstreams.values(), ...(region === undefined ? [] : [region]), ...(tokens === null ? [] : [tokens])]
  const on = options.on === undefined ? {} : { on: harmless(options.on, onError) }
  const { metricsToken = null } = config
  const { console: place, routes = [] } = config
  if (place !== undefined && options.console === undefined) {
    throw new OnceError('bad_option', 'The configuration has a `console`, so that `createGateway` needs one, too.')
  }
  const shown =
    place === undefined || options.console === undefined
      ? null
      : options.console({
          config: place,
          guards: routes.flatMap(guardedBy),
          routes: () => rules.flatMap(servedBy),
          onAction: ({ action, by }) => on.on?.({ kind: 'operator', action, by }),
          onError,
        })
  return serve({
    ...options,
    ...on,
    metricsToken,
    onError,
    ownPath,
    problems,
    rules,
    pass,
    status,
    links,
    console: shown,
  })
}

function guardedBy({ content, operation }: RouteRule): readonly string[] {
  return content !== undefined && operation !== undefined ? [GUARD_PREFIX + operation] : []
}

function servedBy({ methods, path, route: { definition } }: Rule): readonly ServedRoute[] {
  return [...methods].map((method) => ({ kind: 'command', method, path: path.replace(/:(\w+)/g, '{$1}'), definition }))
}

/** A watcher's own faults must never change what happens to a request. */
function harmless<E>(watch: (event: E) => void, onError: (error: unknown) => void): (event: E) => void {
  return (event) => {
    try {
      watch(event)
    } catch (error) {
      onError(error)
    }
  }
}

export interface Serving extends Pick<GatewayOptions, 'ready' | 'drainMs' | 'on'>, MetricsOptions {
  readonly ownPath: string
  /** Says what is wrong with a request that reaches no rule. */
  readonly problems: ProblemWriter
  readonly rules: readonly Rule[]
  /** Where everything goes that no rule fits. */
  readonly pass: Pass | null
  readonly status: TellStatus
  /** Connections that end with the gateway. */
  readonly links: readonly { stop(): void }[]
  readonly onError: (error: unknown) => void
  readonly console?: OpenConsole | null
}

/** The server itself, of rules that are ready to be used. */
export function serve(serving: Serving): Gateway {
  const { ownPath, rules, pass, onError, console: shown = null } = serving
  const front = createFront()
  const upstreams = new Set([...rules, ...(pass === null ? [] : [pass])].map(({ upstream }) => upstream))
  let draining = false
  /** Responses that are not closed, and protected requests whose outcome is not written down. */
  let busy = 0
  const idle = () => void busy--
  /** Node may have read more from these by now, and hands it over all the same. */
  const refused = new WeakSet<Duplex>()
  const pipes = new Set<Duplex>()

  const isOwn = (target: string) =>
    target.startsWith(ownPath) &&
    /^\/(live|ready|metrics|operations\/[^/]+|problems\/[a-z-]+)$/.test(
      target.slice(ownPath.length).split('?')[0] ?? '',
    )

  function handle(message: IncomingMessage, response: ServerResponse, expects = false): void {
    if (refused.has(message.socket)) return
    const cut = () => void (watchRequest(serving.on, message, response).decision = 'overloaded')
    if (!mayPipeline(message, response, cut)) return
    const target = message.url ?? '/'
    if (draining) response.shouldKeepAlive = false
    busy++
    response.once('close', idle)
    const misframed = whyMisframed(message)
    if (misframed !== null) return refuse(response, misframed)
    if (isOwn(target)) {
      return void own(message, response).catch(onError)
    }
    const note = watchRequest(serving.on, message, response)
    const rule = ruleOfRequest(rules, message)
    if (rule === 'malformed') return refuse(response, 'The request target cannot be read.')
    const passing = rule ?? pass
    if (passing === null) return sendAnswer(response, jsonAnswer(404, 'application/json', NO_RULE, notKept))
    const intake = takeIn(front, { message, response, note }, passing.passing.trustForwarded, memoryFor(rule))
    if (intake === null) return turnAway(passing.problems, message, response, note)
    // A client that sends `Expect: 100-continue` learns at once when its body would be refused.
    if (expects && !(rule !== null && lengthOf(message) > rule.maxBodyBytes)) response.writeContinue()
    if (rule === null) return passOn(passing, message, response, intake)
    // What is recorded must be written down before the process ends, whether its client waits for it or not.
    busy++
    void protect(rule, message, response, intake, serving.on).catch(onError).then(idle)
  }

  function turnAway(problems: ProblemWriter, message: IncomingMessage, response: ServerResponse, note: Note): void {
    // No further request can come over a connection whose body is not read; what has come of it is dropped.
    if (hasContent(message)) response.shouldKeepAlive = false
    message.on('error', () => {}).resume()
    sendAnswer(response, tooBusy(problems, note))
  }

  /** Whatever stands behind such a head on its connection may be a part of it, and is no request. */
  function refuse(response: ServerResponse, detail: string): void {
    response.shouldKeepAlive = false
    refused.add(response.req.socket)
    sendAnswer(response, serving.problems.write('invalid-request', { detail }))
  }

  async function own(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (message.url ?? '').slice(ownPath.length).split('?')[0] ?? ''
    message.resume()
    setOwnHeaders(response)
    sendAnswer(response, await ownAnswer(path, message))
  }

  async function ownAnswer(path: string, message: IncomingMessage): Promise<Answer> {
    const json = (status: number, value: unknown) => jsonAnswer(status, 'application/json', value)
    if (path.startsWith('/operations/') && message.method === 'GET') return serving.status(message)
    if (path === '/metrics') return metricsAnswer(serving, message)
    if (path.startsWith('/problems/')) return problemAt(path.slice('/problems/'.length), message)
    if (path === '/live') return json(200, { live: true })
    if (path !== '/ready') return json(404, { title: 'Nothing is here' })
    const why = draining ? 'ending' : await whyNotReady(serving.ready)
    return why === null ? json(200, { ready: true }) : json(503, { ready: false, why })
  }

  /** Where the `type` of the gateway's problems leads, unless the configuration has another place for them. */
  function problemAt(name: string, { headers }: IncomingMessage): Answer {
    const page = problemPage({ name, type: `${ownPath}/problems/${name}`, accept: headers.accept })
    return page ?? jsonAnswer(404, 'application/json', { title: 'There is no such problem' })
  }

  /** Any other offered protocol change is ignored, so that it cannot bypass a rule. */
  const mayUpgrade = (message: IncomingMessage) =>
    pass !== null &&
    message.method === 'GET' &&
    message.headers.upgrade?.toLowerCase() === 'websocket' &&
    !isOwn(message.url ?? '/') &&
    ruleOfRequest(rules, message) === null

  const settings = { headersTimeout: gatewayLimits.headMs, requestTimeout: 0, noDelay: true }
  const server = createServer({ ...settings, shouldUpgradeCallback: mayUpgrade })
  server.on('request', (message: IncomingMessage, response: ServerResponse) => handle(message, response))
  server.on('checkContinue', (message: IncomingMessage, response: ServerResponse) => handle(message, response, true))
  limitConnections(server, front.connections)
  server.on('upgrade', (message: IncomingMessage, socket: Duplex, head: Buffer) => {
    pipes.add(socket)
    // Node has removed its own listener, and an unhandled error event ends the process.
    socket.on('error', () => {}).once('close', () => pipes.delete(socket))
    // Before 22.21 Node does not ask whether to accept an upgrade: an unwanted one is refused, and nothing forwarded.
    if (refused.has(socket)) return void socket.end()
    const may = mayUpgrade(message) && whyMisframed(message) === null && !declaresBody(message)
    if (pass === null || !may) return void socket.end(`HTTP/1.1 400 Bad Request\r\n${CLOSING}`)
    if (draining) return void socket.end(`HTTP/1.1 503 Service Unavailable\r\n${CLOSING}`)
    const key = clientKey(message, pass.passing.trustForwarded)
    if (!front.streams.enter(key)) {
      const seconds = Math.ceil(retryAfterMs() / SECOND)
      return void socket.end(`HTTP/1.1 503 Service Unavailable\r\nRetry-After: ${seconds}\r\n${CLOSING}`)
    }
    socket.once('close', () => front.streams.leave(key))
    passUpgrade(pass, message, socket, head)
  })

  let stopping: Promise<void> | null = null
  async function drain(): Promise<void> {
    draining = true
    const { drainMs = gatewayDefaults.drainMs } = serving
    const closed = closeListener(server)
    await shown?.stop()
    // A connection that looks idle may carry a request already: it gets a moment, and its last answer says "close".
    await pause(Math.min(gatewayLimits.lingerMs, drainMs))
    const giveUpAt = performance.now() + drainMs
    while (busy > 0 && performance.now() < giveUpAt) await pause(LOOK_MS)
    server.closeAllConnections()
    for (const socket of pipes) socket.destroy()
    for (const link of serving.links) link.stop()
    front.fingerprints.stop()
    await closed
  }
  const stop = () => (stopping ??= drain())

  return {
    async listen(port, host) {
      // First, so that a gateway which serves has the console that was asked for.
      const seen = shown === null ? null : await shown.listen()
      const place = await listen(server, port, host)
      return { ...place, console: seen === null ? null : { ...seen, token: shown?.token ?? null } }
    },
    get load() {
      return loadOf(front, upstreams)
    },
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

const NO_RULE = { title: 'No rule and no upstream fits this request' }

const lengthOf = ({ headers }: IncomingMessage) => Number(headers['content-length'] ?? 0)

/** How much of a body is ever in memory. */
const memoryFor = (rule: Rule | null) => (rule === null ? gatewayLimits.gatheredBytes : gatewayLimits.memoryBodyBytes)

const CLOSING = 'Connection: close\r\nContent-Length: 0\r\n\r\n'
const LOOK_MS = 10
const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))

/** Unlike `server.close`, this leaves idle connections open for the moment. */
function closeListener(server: Server): Promise<void> {
  if (!server.listening) return Promise.resolve()
  const { promise, resolve } = Promise.withResolvers<void>()
  NetServer.prototype.close.call(server, () => resolve())
  return promise
}

async function whyNotReady(ready: GatewayOptions['ready']): Promise<string | null> {
  if (ready === undefined) return null
  const { promise, resolve } = Promise.withResolvers<string>()
  const timer = setTimeout(() => resolve('the store does not answer'), gatewayLimits.readyMs)
  try {
    return await Promise.race([ready().then(() => null), promise])
  } catch {
    return 'the store cannot be reached'
  } finally {
    clearTimeout(timer)
  }
}
