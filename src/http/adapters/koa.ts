import { Readable } from 'node:stream'
import type { DefaultContext, Response as KoaResponse, Next, ParameterizedContext } from 'koa'
import { isVerdict } from '../../ledger/core/verdict.ts'
import { bodyOnWire, capturePayload, headersOf, NodeIncoming, parsedJson, readBody } from '../protocol/capture-node.ts'
import type { DefinitionOf, EffectKind, HandlerContext, KeyRule } from '../protocol/context.ts'
import { answerEarly } from '../protocol/early-node.ts'
import type { Answer, IncomingBody } from '../protocol/exchange.ts'
import { hasNoBody, headerOf, headersByName, MAX_BODY_BYTES, noBody } from '../protocol/exchange.ts'
import { bodyConsumed, checkHandler } from '../protocol/options.ts'
import type { HttpOptions, Route } from '../protocol/protect.ts'
import { createRoute } from '../protocol/protect.ts'
import { checkOptions } from '../protocol/protect-options.ts'
import type { ProtectedRoute } from '../protocol/route.ts'
import type { Running } from '../protocol/running.ts'
import type { StatusOptions } from '../protocol/status.ts'
import { createStatus } from '../protocol/status.ts'
import type { Tap } from '../protocol/tap-node.ts'
import { tapResponse } from '../protocol/tap-node.ts'
import type { Awaitable } from '../protocol/thenable.ts'

export type { ProtectedRoute } from '../protocol/route.ts'
export type { LeasedRouteContext, RouteContext, TransactionRouteContext } from '../protocol/running.ts'

// oxlint-disable-next-line typescript/no-explicit-any -- Koa's own default for the state.
type AnyState = any

/** Koa's context with the parameters that a router adds. */
export interface KoaContext extends ParameterizedContext<AnyState, DefaultContext, unknown> {
  params: Record<string, string>
}

export interface KoaOptions<Tx> extends HttpOptions<KoaContext, Tx> {
  /** The largest body that is read where no parser has read it, in bytes. @default 1 MiB */
  readonly maxBodyBytes?: number
}

/** Takes the definition and the handler of one route, and returns what a router of Koa takes as its handler. */
export interface KoaProtect<Tx> {
  <E extends EffectKind, K extends KeyRule = 'required', C = KoaContext>(
    definition: DefinitionOf<KoaContext, E, K>,
    handler: (ctx: C, context: HandlerContext<Tx, E, K>) => unknown,
  ): ((ctx: C, next: Next) => Promise<void>) & ProtectedRoute<KoaContext>
}

/**
 * Protects handlers of Koa 3 and 2, with any router.
 *
 * @example
 * ```ts
 * import Router from '@koa/router'
 * import { createLedger } from 'onceonly'
 * import { createProtect } from 'onceonly/koa'
 * import { sqliteStore } from 'onceonly/sqlite'
 *
 * const once = createLedger({ store: sqliteStore('orders.db') })
 * const protect = createProtect({
 *   ledger: once,
 *   who: (ctx) => ({ tenant: 'acme', caller: ctx.get('x-user') || 'anonymous' }),
 * })
 *
 * const router = new Router()
 * router.post(
 *   '/shows/:show/tickets',
 *   protect({ name: 'ticket.buy', effect: 'transaction' }, async (ctx, { tx }) => {
 *     await tx.query('insert into tickets (show) values (?)', [ctx.params['show'] ?? ''])
 *     ctx.status = 201
 *   }),
 * )
 * ```
 */
export function createProtect<Tx>(options: KoaOptions<Tx>): KoaProtect<Tx> {
  checkOptions(options, ['maxBodyBytes'])
  const { maxBodyBytes = MAX_BODY_BYTES } = options

  return (definition, handler) => {
    const route = createRoute(options, definition)
    checkHandler(definition, handler)
    const handle = handler as unknown as Handler<Tx>

    async function protect(ctx: KoaContext): Promise<void> {
      const incoming = new NodeIncoming(ctx.req, ctx.res, ctx.originalUrl, () => bodyOf(ctx, maxBodyBytes))
      const beginning = route.begin(incoming, ctx, incoming)
      const begun = beginning instanceof Promise ? await beginning : beginning
      switch (begun.kind) {
        case 'unprotected':
          await handle(ctx, null)
          return
        case 'answer':
          return put(ctx, begun.answer)
        case 'run':
          return handled(route, ctx, begun, handle)
      }
    }
    return Object.assign((ctx: unknown) => protect(ctx as KoaContext), { definition })
  }
}

type Handler<Tx> = (ctx: KoaContext, context: HandlerContext<Tx, EffectKind, 'optional'>) => unknown

async function handled<Tx>(
  route: Route<KoaContext, Tx>,
  ctx: KoaContext,
  running: Running<Tx>,
  handler: Handler<Tx>,
): Promise<void> {
  const { maxAnswerBytes: maxBytes, buffered } = route
  const tap = () => tapResponse(ctx.res, { maxBytes, buffered, running })
  const before = new Set(Object.keys(ctx.response.headers))
  const held = holdStreams(ctx.response)
  const byHand = tapWhenWrittenByHand(ctx, tap)
  answerEarly(ctx.res, running.early)
  try {
    await running.inside(() => handler(ctx, running.context))
  } catch (error) {
    held.release()
    // An error handler before us, or Koa itself, writes the response. What was thrown says more than that.
    const tapped = byHand() ?? tap()
    tapped.threw(error)
    throw isVerdict(error) ? error.error : error
  }
  const stream = held.release()
  if (byHand() !== null) return
  await record(ctx, stream, { ...route, running, before })
}

interface Recording<Tx> extends Pick<Route<KoaContext, Tx>, 'maxAnswerBytes' | 'buffered'> {
  readonly running: Running<Tx>
  /** Headers that were there before the handler: they stay when its response is replaced. */
  readonly before: ReadonlySet<string>
}

/** Records the response here and not when Koa sends it: compression and other middleware come in between. */
async function record<Tx>(ctx: KoaContext, stream: Readable | null, recording: Recording<Tx>): Promise<void> {
  const { running, before } = recording
  const { method, response } = ctx
  const payload = stream ?? payloadOf(ctx)
  const head = { method, status: ctx.status, headers: headersOf(ctx.res) }
  const sent = await capturePayload(payload, head, recording, running)
  switch (sent?.kind) {
    case undefined:
      return
    case 'body': {
      response.body = sent.body instanceof Readable ? sent.body : Buffer.from(sent.body)
      const length = headerOf(head.headers, 'content-length')
      // Koa drops it when one body takes the place of another.
      if (length !== null) ctx.set('content-length', length)
      return
    }
    case 'instead':
      for (const name of Object.keys(response.headers)) if (!before.has(name)) ctx.remove(name)
      return put(ctx, sent.answer)
  }
}

/** What Koa would send, as text, bytes or a stream; it is set as the body, so that Koa sends the same. */
function payloadOf({ response }: KoaContext): unknown {
  const { status, message } = response
  if (hasNoBody(status)) response.body = null
  const body = response.body as unknown
  if (body === null) return null
  if (body instanceof Blob) return body.stream()
  if (typeof body === 'string' || Buffer.isBuffer(body)) return body
  if (body instanceof ReadableStream || body instanceof Response) return body
  if (body !== undefined) return (response.body = JSON.stringify(body))
  // Koa's text for a response without a body. An explicit status keeps its body's setter from making a 200 of it.
  response.status = status
  response.type = 'text'
  return (response.body = message === '' ? String(status) : message)
}

interface HeldStreams {
  /** Ends the holding, and returns the stream that the handler gave last, if the body is one. */
  release(): Readable | null
}

/**
 * Koa destroys a stream as soon as its client leaves. A retry shall get all of it, so Koa gets an empty stream in its
 * place until the handler's is recorded.
 */
function holdStreams(response: KoaResponse): HeldStreams {
  const inherited = propertyOf(response, 'body')
  let held: Readable | null = null
  Object.defineProperty(response, 'body', {
    configurable: true,
    enumerable: true,
    get: () => held ?? (inherited.get?.call(response) as unknown),
    set(body: unknown) {
      held = isNodeStream(body) ? body : null
      inherited.set?.call(response, held === null ? body : new ReadableStream())
    },
  })
  return {
    release() {
      delete (response as { body?: unknown }).body
      return held
    },
  }
}

function propertyOf(object: object, name: string): PropertyDescriptor {
  for (let at: object | null = object; at !== null; at = Object.getPrototypeOf(at) as object | null) {
    const found = Object.getOwnPropertyDescriptor(at, name)
    if (found !== undefined) return found
  }
  return {}
}

function isNodeStream(body: unknown): body is Readable {
  return typeof (body as { pipe?: unknown } | null | undefined)?.pipe === 'function'
}

/** With `ctx.respond = false` a handler writes to Node's response by itself. Returns the tap, once there is one. */
function tapWhenWrittenByHand(ctx: KoaContext, tap: () => Tap): () => Tap | null {
  let respond = ctx.respond
  let tapped: Tap | null = null
  Object.defineProperty(ctx, 'respond', {
    configurable: true,
    enumerable: true,
    get: () => respond,
    set(value: boolean) {
      if (value === false) tapped ??= tap()
      respond = value
    },
  })
  return () => tapped
}

/** Through Koa, so that middleware before us treats a replay as it treats the first response. */
function put(ctx: KoaContext, { status, headers, body }: Answer): void {
  ctx.status = status
  for (const [name, value] of headersByName(headers)) ctx.set(name, typeof value === 'string' ? value : [...value])
  if (hasNoBody(status)) return void (ctx.body = null)
  // A copy: other middleware gets these bytes, and they may be shared by all replays.
  ctx.body = Buffer.from(body)
  // Koa counts the bytes, and a replayed HEAD has none.
  const length = headerOf(headers, 'content-length')
  if (length !== null) ctx.set('content-length', length)
  // Koa names a type for any bytes; a response that had none is replayed without one.
  if (headerOf(headers, 'content-type') === null) ctx.remove('content-type')
}

/** The raw bytes: kept by a parser, or still unread; otherwise what a parser made of them. */
function bodyOf({ req, request, originalUrl }: KoaContext, maxBytes: number): Awaitable<IncomingBody> {
  const parsed = request as { body?: unknown; rawBody?: unknown }
  // Parsers undo the content encoding before they keep a body.
  const inflated = req.headers['content-encoding'] !== undefined
  for (const kept of [parsed.rawBody, parsed.body]) {
    if (kept instanceof Uint8Array) return { bytes: kept, inflated }
    if (typeof kept === 'string') return { bytes: Buffer.from(kept), inflated }
  }
  if (parsed.body !== undefined) return { parsed: parsed.body }
  if (req.readableDidRead && bodyOnWire(req)) {
    const { method = 'GET' } = req
    throw bodyConsumed({ method, target: originalUrl }, 'use a parser that sets ctx.request.body')
  }
  return readBody(req, maxBytes).then((bytes) => {
    // Parsers that come later find the stream at its end, and keep what stands here.
    parsed.body = parsedJson(req, bytes)
    return { bytes }
  })
}

/** `GET /operations/{id}` as a handler of Koa. */
export function operationStatus<Tx>(options: StatusOptions<KoaContext, Tx>) {
  const status = createStatus(options)
  return async (ctx: KoaContext): Promise<void> => {
    const { originalUrl: target } = ctx
    put(ctx, await status.answer(target, ctx, new NodeIncoming(ctx.req, null, target, noBody)))
  }
}
