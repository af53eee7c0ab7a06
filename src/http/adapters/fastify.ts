import { isUtf8 } from 'node:buffer'
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import type {
  ContextConfigDefault,
  FastifyBaseLogger,
  FastifyInstance,
  FastifyPluginCallback,
  FastifyReply,
  FastifyRequest,
  FastifySchema,
  FastifyTypeProvider,
  FastifyTypeProviderDefault,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerBase,
  RawServerDefault,
  RouteGenericInterface,
  RouteHandlerMethod,
  RouteOptions,
} from 'fastify'
import { OnceError } from '../../ledger/core/errors.ts'
import { isVerdict } from '../../ledger/core/verdict.ts'
import type { SentPayload } from '../protocol/capture-node.ts'
import { capturePayload, headersOf, NodeIncoming } from '../protocol/capture-node.ts'
import type { DefinitionOf, EffectKind, HandlerContext, KeyRule } from '../protocol/context.ts'
import { backgroundOver } from '../protocol/early.ts'
import { answerEarly } from '../protocol/early-node.ts'
import type { Answer, HeaderList } from '../protocol/exchange.ts'
import { hasNoBody, headersByName, noBody } from '../protocol/exchange.ts'
import { checkHandler } from '../protocol/options.ts'
import type { BegunRequest, HttpOptions, Route } from '../protocol/protect.ts'
import { createRoute } from '../protocol/protect.ts'
import { checkOptions } from '../protocol/protect-options.ts'
import type { ProtectedRoute } from '../protocol/route.ts'
import type { Running } from '../protocol/running.ts'
import type { StatusOptions } from '../protocol/status.ts'
import { createStatus } from '../protocol/status.ts'
import { tapResponse } from '../protocol/tap-node.ts'
import { isThenable } from '../protocol/thenable.ts'
import type { AnyRequest } from './fastify-body.ts'
import { FastifyIncoming, keepRawBodies } from './fastify-body.ts'

export type { ProtectedRoute } from '../protocol/route.ts'
export type { LeasedRouteContext, RouteContext, TransactionRouteContext } from '../protocol/running.ts'

type Sent = (error: Error | null, payload?: unknown) => void

/** The reply of any server and route, which differ in their types only. */
// oxlint-disable-next-line typescript/no-explicit-any -- every server, provider and logger has types of its own.
type AnyReply = FastifyReply<any, any, any, any, any, any, any>

/**
 * What is known of a request stands on it, under symbols: a table that holds requests weakly costs every garbage
 * collection, and two microseconds per request.
 */
const exchange = Symbol('onceonly.exchange')
const begunMark = Symbol('onceonly.begun')
const thrownMark = Symbol('onceonly.thrown')
const beforeMark = Symbol('onceonly.before')

interface Marks<Tx> {
  [exchange]?: Running<Tx> | Answered | null
  [begunMark]?: true
  /** By its handler. */
  [thrownMark]?: unknown
  /** Headers that were there before the handler: they stay when its response is replaced. */
  [beforeMark]?: ReadonlySet<string>
}

/** The protocol answers: on its way through the same hooks. */
interface Answered {
  readonly kind: 'answered'
  readonly untyped: boolean
  readonly sent: Buffer | undefined
  readonly text: string | undefined
}

/** Whether a protected handler has begun for this request; for access logs and error handlers. */
export function hasBegun(request: object): boolean {
  return (request as Marks<unknown>)[begunMark] === true
}

/** On a protected handler: what the plugin adds to the route that uses it. */
const hooksMark = Symbol('onceonly.hooks')

interface Hooks {
  readonly ledger: object
  added: boolean
  hijack(this: AnyReply): AnyReply
  onError(request: AnyRequest, reply: AnyReply, error: unknown): Promise<void>
  onSend(request: AnyRequest, reply: AnyReply, payload: unknown, done: Sent): Promise<unknown> | undefined
}

/**
 * `await app.register(onceonly)` before the routes: keeps the raw bytes of bodies for their fingerprints, and records
 * what protected handlers send.
 */
export const onceonly: FastifyPluginCallback = Object.assign(
  (app: FastifyInstance, _options: unknown, done: (error?: Error) => void) => {
    keepRawBodies(app)
    const ledgers = new Set<object>()
    app.addHook('onRoute', (route) => {
      const hooks = (route.handler as { [hooksMark]?: Hooks })[hooksMark]
      if (hooks === undefined) return
      hooks.added = true
      ledgers.add(hooks.ledger)
      addHooks(route, hooks)
    })
    app.addHook('onClose', async () => void (await Promise.all([...ledgers].map(backgroundOver))))
    done()
  },
  // Not only for the routes of this plugin, but for all of the application.
  { [Symbol.for('skip-override')]: true, [Symbol.for('fastify.display-name')]: 'onceonly' },
)

/** First, so that what is recorded is what the handler sent, and not what compression made of it. */
function addHooks(route: RouteOptions, { onSend, onError }: Hooks): void {
  const hooks = { onSend: [onSend, ...listed(route.onSend)], onError: [onError, ...listed(route.onError)] }
  Object.assign(route, hooks)
}

function listed<T>(hooks: T | T[] | undefined): T[] {
  return hooks === undefined ? [] : ([hooks].flat() as T[])
}

/** Takes the definition and the handler of one route, and returns what Fastify takes as its handler. */
export interface FastifyProtect<Tx> {
  <
    E extends EffectKind,
    K extends KeyRule = 'required',
    Server extends RawServerBase = RawServerDefault,
    Req extends RawRequestDefaultExpression<Server> = RawRequestDefaultExpression<Server>,
    Res extends RawReplyDefaultExpression<Server> = RawReplyDefaultExpression<Server>,
    Generic extends RouteGenericInterface = RouteGenericInterface,
    Config = ContextConfigDefault,
    Schema extends FastifySchema = FastifySchema,
    Provider extends FastifyTypeProvider = FastifyTypeProviderDefault,
    Logger extends FastifyBaseLogger = FastifyBaseLogger,
  >(
    definition: DefinitionOf<
      FastifyRequest,
      E,
      K,
      FastifyRequest<Generic, Server, Req, Schema, Provider, Config, Logger>['body']
    >,
    handler: (
      request: FastifyRequest<Generic, Server, Req, Schema, Provider, Config, Logger>,
      reply: FastifyReply<Generic, Server, Req, Res, Config, Schema, Provider>,
      context: HandlerContext<Tx, E, K>,
    ) => ReturnType<RouteHandlerMethod<Server, Req, Res, Generic, Config, Schema, Provider, Logger>>,
  ): RouteHandlerMethod<Server, Req, Res, Generic, Config, Schema, Provider, Logger> & ProtectedRoute<FastifyRequest>
}

/**
 * Protects handlers of Fastify 5. The plugin of this entry has to be registered before the routes.
 *
 * @example
 * ```ts
 * import Fastify from 'fastify'
 * import { createLedger } from 'onceonly'
 * import { createProtect, onceonly } from 'onceonly/fastify'
 * import { sqliteStore } from 'onceonly/sqlite'
 *
 * const once = createLedger({ store: sqliteStore('orders.db') })
 * const protect = createProtect({
 *   ledger: once,
 *   who: (request) => ({ tenant: 'acme', caller: request.headers.from ?? 'anonymous' }),
 * })
 *
 * const app = Fastify()
 * await app.register(onceonly)
 * app.post<{ Body: { item: string } }>(
 *   '/orders',
 *   protect({ name: 'order.place', effect: 'transaction' }, async (request, reply, { tx }) => {
 *     await tx.query('insert into orders (item) values (?)', [request.body.item])
 *     return reply.code(201).send({ item: request.body.item })
 *   }),
 * )
 * ```
 */
export function createProtect<Tx>(options: HttpOptions<FastifyRequest, Tx>): FastifyProtect<Tx> {
  checkOptions(options)

  return (definition, handler) => {
    const route = createRoute(options, definition)
    checkHandler(definition, handler)
    const hooks = createHooks<Tx>(options.ledger, route)
    const run = createHandler(route, handler as Handler<Tx>, hooks)
    return Object.assign(run, { definition, [hooksMark]: hooks }) as never
  }
}

function notRegistered(): OnceError {
  const message =
    'The plugin of onceonly/fastify is not registered: call `await app.register(onceonly)` before the routes.'
  return new OnceError('bad_option', message)
}

type Handler<Tx> = (
  request: AnyRequest,
  reply: AnyReply,
  context: HandlerContext<Tx, EffectKind, 'optional'>,
) => unknown

/** After authentication and validation: the claim, and then the handler in the context of its transaction. */
function createHandler<Tx>(route: Route<FastifyRequest, Tx>, handler: Handler<Tx>, hooks: Hooks) {
  function carryOut(request: AnyRequest, reply: AnyReply, begun: BegunRequest<Tx>): unknown {
    const marks = request as Marks<Tx>
    if (begun.kind === 'unprotected') return handler(request, reply, null) ?? reply
    if (begun.kind === 'answer') {
      const { answer } = begun
      const sent = put(reply, answer)
      marks[exchange] = { kind: 'answered', untyped: !reply.hasHeader('content-type'), sent, text: answer.text }
      return reply.send(sent)
    }
    marks[exchange] = begun
    marks[begunMark] = true
    // Only the response of a transaction is ever replaced.
    if (route.buffered) marks[beforeMark] = new Set(Object.keys(reply.getHeaders()))
    reply.hijack = hooks.hijack
    if (begun.early !== null) answerEarly(reply.raw, begun.early, reply.getHeaders() as OutgoingHttpHeaders)
    const failed = (error: unknown): never => {
      marks[thrownMark] = error
      // Error handlers of the application want the error itself.
      throw isVerdict(error) ? error.error : error
    }
    try {
      // A handler that returns nothing has called `reply.send`, or will: the reply is over when it has been sent.
      const result = begun.inside(() => handler(request, reply, begun.context)) ?? reply
      // A reply can be waited for as well, until it is sent.
      return result !== reply && isThenable(result) ? Promise.resolve(result).catch(failed) : result
    } catch (error) {
      return failed(error)
    }
  }

  return (request: AnyRequest, reply: AnyReply): unknown => {
    if (!hooks.added) throw notRegistered()
    const incoming = new FastifyIncoming(request.raw, reply.raw, request.raw.url ?? '/', request)
    const begun = route.begin(incoming, request, incoming)
    if (begun instanceof Promise) return begun.then((found) => carryOut(request, reply, found))
    const result = carryOut(request, reply, begun)
    // Fastify waits for a reply that is returned; what was sent at once need not be waited for.
    return begun.kind === 'answer' ? undefined : result
  }
}

function createHooks<Tx>(ledger: object, route: Route<FastifyRequest, Tx>): Hooks {
  return {
    ledger,
    added: false,
    /** A hijacked reply is written to Node's response directly, past every hook. */
    hijack(this: AnyReply): AnyReply {
      const marks = this.request as Marks<Tx>
      const running = marks[exchange]
      marks[exchange] = null
      if (running?.kind === 'run') {
        // The compatible half of HTTP/2 has the same members.
        const response = this.raw as ServerResponse
        tapResponse(response, { maxBytes: route.maxAnswerBytes, buffered: route.buffered, running })
      }
      return (Object.getPrototypeOf(this) as AnyReply).hijack.call(this)
    },
    /** What was thrown says more than the response that Fastify makes of it. */
    async onError(request, _reply, error) {
      const marks = request as Marks<Tx>
      if (marks[exchange]?.kind === 'run') marks[thrownMark] ??= error
    },
    /** Records what is about to be sent. A promise only where the store has to be waited for. */
    onSend(request, reply, payload, done) {
      const marks = request as Marks<Tx>
      const known = marks[exchange] ?? null
      marks[exchange] = null
      if (known?.kind === 'run') {
        const headers = headersOf(reply as { getHeaders(): OutgoingHttpHeaders })
        const { method } = request
        const head =
          payload instanceof Response
            ? { method, ...headOf(payload, headers) }
            : { method, status: reply.statusCode, headers }
        const sent = capturePayload(payload, head, route, known, marks[thrownMark])
        if (sent instanceof Promise) return sent.then((given) => sentInstead(given, reply, payload, marks))
        done(null, sent === null ? payload : sentInstead(sent, reply, payload, marks))
        return undefined
      }
      // Fastify names a type for any body; a response that had none is replayed without one.
      if (known?.untyped) reply.removeHeader('content-type')
      done(null, known !== null && payload === known.sent ? (known.text ?? inOnePiece(known.sent)) : payload)
      return undefined
    },
  }
}

/** Bytes, because Fastify would name a charset for a text. */
function put(reply: AnyReply, { status, headers, body, text }: Answer): Buffer | undefined {
  reply.code(status)
  for (const [name, value] of headersByName(headers)) reply.header(name, typeof value === 'string' ? value : [...value])
  if (hasNoBody(status)) return undefined
  // A hook of the application gets these bytes, and they may be shared by all replays; a text cannot be changed.
  return text === undefined ? Buffer.from(body) : Buffer.from(body.buffer, body.byteOffset, body.length)
}

/** Up to here, making a string of a body is cheaper than a second piece to write. */
const ONE_PIECE_BYTES = 16_384

/** Node writes a string together with the head, but a buffer behind it, and two pieces take longer than one. */
function inOnePiece(body: Buffer | undefined): Buffer | string | undefined {
  return body !== undefined && body.length <= ONE_PIECE_BYTES && isUtf8(body) ? body.toString() : body
}

function sentInstead<Tx>(sent: SentPayload | null, reply: AnyReply, payload: unknown, marks: Marks<Tx>): unknown {
  switch (sent?.kind) {
    case undefined:
      return payload
    case 'body':
      return withBody(payload, sent.body)
    case 'instead':
      for (const name of Object.keys(reply.getHeaders())) if (!marks[beforeMark]?.has(name)) reply.removeHeader(name)
      return put(reply, sent.answer) ?? ''
  }
}

/** A web response carries its own status and headers; Fastify looks at them only after this hook. */
function headOf(payload: Response, headers: HeaderList): { readonly status: number; readonly headers: HeaderList } {
  const own = [...payload.headers].map(([name, value]) => [name.toLowerCase(), value] as const)
  const names = new Set(own.map(([name]) => name))
  return { status: payload.status, headers: [...headers.filter(([name]) => !names.has(name)), ...own] }
}

function withBody(payload: unknown, body: Uint8Array | Readable): unknown {
  if (!(payload instanceof Response)) return body
  const { status, headers } = payload
  return new Response(body instanceof Readable ? (Readable.toWeb(body) as ReadableStream) : Buffer.from(body), {
    status,
    headers,
  })
}

/** `GET /operations/{id}` as a handler of Fastify. */
export function operationStatus<Tx>(options: StatusOptions<FastifyRequest, Tx>) {
  const status = createStatus(options)
  return async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    const target = request.raw.url ?? '/'
    const answer = await status.answer(target, request, new NodeIncoming(request.raw, null, target, noBody))
    return reply.send(put(reply, answer))
  }
}
