import { isUtf8 } from 'node:buffer'
import type { ServerResponse } from 'node:http'
import type { Http2ServerResponse } from 'node:http2'
import { Readable } from 'node:stream'
import type { NodeRequest } from '../protocol/capture-node.ts'
import { hangUpSignal, incomingOf } from '../protocol/capture-node.ts'
import { nodeChunks, webChunks } from '../protocol/chunks.ts'
import { collected } from '../protocol/collector.ts'
import { backgroundOver } from '../protocol/early.ts'
import { answerEarly } from '../protocol/early-node.ts'
import type { Answer, Captured, HeaderList, IncomingBody } from '../protocol/exchange.ts'
import { hasNoBody, headerOf, headersByName, noBody } from '../protocol/exchange.ts'
import { createPassage } from '../protocol/passage.ts'
import type { HttpOptions, Route } from '../protocol/protect.ts'
import { createRoute } from '../protocol/protect.ts'
import type { RouteDefinition } from '../protocol/route.ts'
import type { RouteContext, Running } from '../protocol/running.ts'
import type { StatusOptions } from '../protocol/status.ts'
import { createStatus } from '../protocol/status.ts'
import { headersOf, tapResponse } from '../protocol/tap-node.ts'

export type { LeasedRouteContext, RouteContext, TransactionRouteContext } from '../protocol/running.ts'

/** As much of Fastify 5 as we use: the borrowed framework is never imported. */
export interface FastifyRequestLike {
  readonly raw: NodeRequest
  readonly body?: unknown
  /** Set while the request is protected. */
  onceonly?: RouteContext<unknown> | null
}

export interface FastifyReplyLike {
  readonly raw: ServerResponse | Http2ServerResponse
  readonly statusCode: number
  code(status: number): unknown
  header(name: string, value: string | string[]): unknown
  removeHeader(name: string): unknown
  getHeaders(): Record<string, number | string | string[] | undefined>
  send(payload?: unknown): unknown
  hijack(): unknown
}

interface FastifyLike {
  addContentTypeParser(
    type: string,
    options: { parseAs: 'buffer' },
    parser: (request: never, body: Buffer, done: Parsed) => void,
  ): unknown
  getDefaultJsonParser(proto: 'error', constructor: 'error'): (request: never, body: string, done: Parsed) => void
  decorateRequest(name: string, value: null): unknown
  hasRequestDecorator(name: string): boolean
  addHook(name: 'onClose', hook: () => Promise<void>): unknown
}

type Parsed = (error: Error | null, body?: unknown) => void
type Done = (error?: Error) => void
type Sent = (error: Error | null, payload?: unknown) => void

/**
 * Data of a request stands on it, under symbols of our own: a weak table of requests costs every garbage collection, and two
 * microseconds per request.
 */
const rawBody = Symbol('onceonly.rawBody')
const exchange = Symbol('onceonly.exchange')

interface Marks<Tx> {
  [rawBody]?: Uint8Array
  [exchange]?: Exchange<Tx> | Answered | null
}

function marksOf<Tx>(request: object): Marks<Tx> {
  return request
}

/**
 * Keeps the raw bytes of JSON and text beside what is parsed of them. An own buffer parser costs little; reading through
 * `preParsing` halves the throughput. Parsers of yours stay: a buffer or a string of theirs is as good.
 */
function keepRawBodies(app: FastifyLike): void {
  if (app.hasRequestDecorator('onceonly')) return
  app.decorateRequest('onceonly', null)
  const json = app.getDefaultJsonParser('error', 'error')
  addParser(app, 'application/json', (request, body, done) => {
    // Read as text, what is not UTF-8 would become other text without a word, and different bodies the same.
    if (isUtf8(body)) json(request, body.toString(), done)
    else done(Object.assign(new Error('The body is not UTF-8'), { statusCode: 400 }))
  })
  addParser(app, 'text/plain', (_request, body, done) => done(null, body.toString()))
}

function addParser(app: FastifyLike, type: string, parse: (request: never, body: Buffer, done: Parsed) => void): void {
  try {
    app.addContentTypeParser(type, { parseAs: 'buffer' }, (request, body, done) => {
      marksOf(request)[rawBody] = body
      parse(request, body, done)
    })
  } catch (error) {
    // Fastify's own parsers may be replaced without a word; this one is the application's.
    if ((error as { code?: unknown }).code !== 'FST_ERR_CTP_ALREADY_PRESENT') throw error
  }
}

function bodyOf(request: FastifyRequestLike): IncomingBody {
  const { body } = request
  const raw = marksOf(request)[rawBody]
  if (raw !== undefined) return { bytes: raw }
  if (body instanceof Uint8Array) return { bytes: body }
  if (typeof body === 'string') return { bytes: Buffer.from(body) }
  return body === undefined || body === null ? { bytes: new Uint8Array() } : { parsed: body }
}

/** What is known of a protected request between its hooks. */
interface Exchange<Tx> {
  readonly kind: 'running'
  readonly running: Running<Tx>
  /** Headers that were there before the handler: they stay when its answer is replaced. */
  readonly before: ReadonlySet<string>
  thrown?: unknown
}

/** The protocol answers: on its way through the same hooks. */
interface Answered {
  readonly kind: 'answered'
  readonly untyped: boolean
  readonly sent: Buffer | undefined
}

const NO_HEADERS: ReadonlySet<string> = new Set()

/**
 * Hooks for one route: `app.post('/payments', protect({ effect: 'external' }), handler)`; `request.onceonly` is the
 * context of the effect.
 */
export function idempotent<Tx, R extends FastifyRequestLike>(app: FastifyLike, options: HttpOptions<R, Tx>) {
  keepRawBodies(app)
  app.addHook('onClose', () => backgroundOver(options.ledger))

  return (definition: RouteDefinition<R>) => {
    const route = createRoute(options, definition)

    function run(request: R, reply: FastifyReplyLike, running: Running<Tx>): void {
      request.onceonly = running.context as RouteContext<unknown>
      // Only a transaction's answer is ever replaced.
      const before = route.buffered ? new Set(Object.keys(reply.getHeaders())) : NO_HEADERS
      marksOf<Tx>(request)[exchange] = { kind: 'running', running, before }
      tapWhenHijacked(request, reply, running)
      if (running.early !== null) answerEarly(reply.raw, running.early, reply.getHeaders())
    }

    function answer(request: R, reply: FastifyReplyLike, given: Answer): void {
      const sent = put(reply, given)
      const untyped = headerOf(given.headers, 'content-type') === null
      marksOf<Tx>(request)[exchange] = { kind: 'answered', untyped, sent }
      reply.send(sent)
    }

    /**
     * After authentication and validation, before the handler, which runs when `done` is called, in the same context.
     */
    function preHandler(request: R, reply: FastifyReplyLike, done: Done): void {
      void goOn(request, reply, done)
    }

    async function goOn(request: R, reply: FastifyReplyLike, done: Done): Promise<void> {
      try {
        const incoming = incomingOf(request.raw, () => bodyOf(request))
        const begun = await route.begin(incoming, request, hangUpSignal(reply.raw))
        if (begun.kind === 'unprotected') return done()
        if (begun.kind === 'answer') return answer(request, reply, begun.answer)
        run(request, reply, begun)
        begun.inside(done)
      } catch (error) {
        done(error as Error)
      }
    }

    /** A hijacked reply is written to Node's response directly, past every hook. */
    function tapWhenHijacked(request: R, reply: FastifyReplyLike, running: Running<Tx>): void {
      const hijack = reply.hijack.bind(reply)
      reply.hijack = () => {
        marksOf<Tx>(request)[exchange] = null
        // The compatible half of HTTP/2 has the same members.
        tapResponse(reply.raw as ServerResponse, { maxBytes: route.maxAnswerBytes, buffered: route.buffered, running })
        return hijack()
      }
    }

    /** The thrown error says more than the response that Fastify makes of it. */
    async function onError(request: R, _reply: FastifyReplyLike, error: unknown): Promise<void> {
      const known = marksOf<Tx>(request)[exchange]
      if (known?.kind === 'running') known.thrown = error
    }

    /** A promise only for what is recorded first: every other answer leaves at once. */
    function onSend(request: R, reply: FastifyReplyLike, payload: unknown, done: Sent): Promise<unknown> | undefined {
      const marks = marksOf<Tx>(request)
      const known = marks[exchange] ?? null
      marks[exchange] = null
      if (known?.kind === 'running') return captured(route, known, reply, payload)
      // Fastify names a type for any buffer; an answer that had none is replayed without one.
      if (known?.untyped) reply.removeHeader('content-type')
      done(null, known !== null && payload === known.sent ? inOnePiece(known.sent) : payload)
      return undefined
    }

    return { definition, preHandler, onError, onSend }
  }
}

function put(reply: FastifyReplyLike, { status, headers, body }: Answer): Buffer | undefined {
  reply.code(status)
  for (const [name, value] of headersByName(headers)) reply.header(name, typeof value === 'string' ? value : [...value])
  return hasNoBody(status) ? undefined : Buffer.from(body.buffer, body.byteOffset, body.length)
}

/** Up to here, making a string of a body is cheaper than a second piece to write. */
const ONE_PIECE_BYTES = 16_384

/** Node writes a string together with the head, but a buffer behind it, and two pieces take longer than one. */
function inOnePiece(body: Buffer | undefined): Buffer | string | undefined {
  return body !== undefined && body.length <= ONE_PIECE_BYTES && isUtf8(body) ? body.toString() : body
}

/** Records what is about to be sent, and gives what is to be sent instead of it. */
async function captured<Tx>(
  route: Route<never, Tx>,
  { running, before, thrown }: Exchange<Tx>,
  reply: FastifyReplyLike,
  payload: unknown,
): Promise<unknown> {
  const maxBytes = route.maxAnswerBytes
  const head = headOf(reply, payload)
  const finish = async (body: Captured['body']) => {
    const instead = await running.finish({ ...head, body }, thrown)
    if (instead === null) return null
    for (const name of Object.keys(reply.getHeaders())) if (!before.has(name)) reply.removeHeader(name)
    return put(reply, instead) ?? ''
  }
  const stream = streamOf(payload)
  if (stream === null) {
    const bytes = typeof payload === 'string' ? Buffer.from(payload) : payload instanceof Uint8Array ? payload : null
    if (reply.raw.req.method !== 'HEAD')
      return (await finish(collected(bytes ?? new Uint8Array(), maxBytes))) ?? payload
    // Fastify declares the length of what a HEAD leaves out, but only after this hook.
    const length = bytes === null || headerOf(head.headers, 'content-length') !== null ? [] : [lengthOf(bytes)]
    await running.finish({ ...head, headers: [...head.headers, ...length], body: new Uint8Array() }, thrown)
    return payload
  }
  if (route.buffered) {
    const bytes = await wholeOf(stream, running)
    return (await finish(collected(bytes, maxBytes))) ?? withBody(payload, bytes)
  }
  const passage = createPassage(stream, { ...head, maxBytes, running, thrown })
  const readable = new Readable({
    read() {
      passage.read().then(
        (chunk) => readable.push(chunk),
        (error: unknown) => readable.destroy(error as Error),
      )
    },
    destroy(error, done) {
      passage.leave()
      done(error)
    },
  })
  return withBody(payload, readable)
}

const lengthOf = (bytes: Uint8Array) => ['content-length', String(bytes.length)] as const

/** A web response carries its own status and headers; Fastify looks at them only after this hook. */
function headOf(reply: FastifyReplyLike, payload: unknown): { readonly status: number; readonly headers: HeaderList } {
  const headers = headersOf(reply)
  if (!(payload instanceof Response)) return { status: reply.statusCode, headers }
  const own = [...payload.headers].map(([name, value]) => [name.toLowerCase(), value] as const)
  const names = new Set(own.map(([name]) => name))
  return { status: payload.status, headers: [...headers.filter(([name]) => !names.has(name)), ...own] }
}

function streamOf(payload: unknown): AsyncIterator<Uint8Array> | null {
  const body = payload instanceof Response ? payload.body : payload
  if (body instanceof ReadableStream) return webChunks(body)
  const { pipe } = (body ?? {}) as { pipe?: unknown }
  return typeof pipe === 'function' ? nodeChunks(body as Readable) : null
}

function withBody(payload: unknown, body: Uint8Array | Readable): unknown {
  if (!(payload instanceof Response)) return body
  const { status, headers } = payload
  return new Response(body instanceof Readable ? (Readable.toWeb(body) as ReadableStream) : Buffer.from(body), {
    status,
    headers,
  })
}

async function wholeOf(stream: AsyncIterator<Uint8Array>, running: Running<unknown>): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  try {
    for (;;) {
      const { done, value } = await stream.next()
      if (done === true) return Buffer.concat(chunks)
      chunks.push(Uint8Array.prototype.slice.call(value))
    }
  } catch (error) {
    await running.fail(error)
    throw error
  }
}

/** `GET /operations/{id}` as a handler of Fastify. */
export function operationStatus<Tx, R extends FastifyRequestLike>(options: StatusOptions<R, Tx>) {
  const status = createStatus(options)
  return async (request: R, reply: FastifyReplyLike): Promise<unknown> => {
    const answer = await status.answer(request.raw.url ?? '/', request, incomingOf(request.raw, noBody))
    return reply.send(put(reply, answer))
  }
}
