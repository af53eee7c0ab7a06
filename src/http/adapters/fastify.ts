import { isUtf8 } from 'node:buffer'
import type { ServerResponse } from 'node:http'
import type { Http2ServerResponse } from 'node:http2'
import { Readable } from 'node:stream'
import type { NodeRequest } from '../capture-node.ts'
import { hangUpSignal, incomingOf } from '../capture-node.ts'
import { collected } from '../collector.ts'
import type { Answer, Captured, HeaderList, IncomingBody } from '../exchange.ts'
import { hasNoBody, headerOf, headersByName } from '../exchange.ts'
import { createPassage } from '../passage.ts'
import type { HttpOptions, Route } from '../protect.ts'
import { createRoute } from '../protect.ts'
import type { RouteDefinition } from '../route.ts'
import type { Protection, Running } from '../running.ts'
import type { StatusOptions } from '../status.ts'
import { createStatus } from '../status.ts'
import { headersOf, tapResponse } from '../tap-node.ts'

export type { Protection } from '../running.ts'

/** As much of Fastify 5 as we use: the borrowed framework is never imported. */
export interface FastifyRequestLike {
  readonly raw: NodeRequest
  readonly body?: unknown
  /** Set while the request is protected. */
  onceonly?: Protection<unknown> | null
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
}

type Parsed = (error: Error | null, body?: unknown) => void
type Done = (error?: Error) => void

const rawBodies = new WeakMap<object, Uint8Array>()

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
      rawBodies.set(request, body)
      parse(request, body, done)
    })
  } catch (error) {
    // Fastify's own parsers may be replaced without a word; this one is the application's.
    if ((error as { code?: unknown }).code !== 'FST_ERR_CTP_ALREADY_PRESENT') throw error
  }
}

function bodyOf(request: FastifyRequestLike): IncomingBody {
  const { body } = request
  const raw = rawBodies.get(request)
  if (raw !== undefined) return { bytes: raw }
  if (body instanceof Uint8Array) return { bytes: body }
  if (typeof body === 'string') return { bytes: Buffer.from(body) }
  return body === undefined || body === null ? { bytes: new Uint8Array() } : { parsed: body }
}

/** What is known of a protected request between its hooks. */
interface Exchange<Tx> {
  readonly running: Running<Tx>
  /** Headers that were there before the handler: they stay when its answer is replaced. */
  readonly before: ReadonlySet<string>
  thrown?: unknown
}

/** Hooks for one route: `app.post('/payments', protect({ effect: 'external' }), handler)`; `request.onceonly` is the protection. */
export function idempotent<Tx, R extends FastifyRequestLike>(app: FastifyLike, options: HttpOptions<R, Tx>) {
  keepRawBodies(app)

  return (definition: RouteDefinition<R>) => {
    const route = createRoute(options, definition)
    const exchanges = new WeakMap<object, Exchange<Tx>>()
    /** Answers of the protocol, on their way through the same hooks. */
    const untyped = new WeakSet<object>()

    async function begin(request: R, reply: FastifyReplyLike): Promise<Running<Tx> | 'unprotected' | 'answered'> {
      const incoming = incomingOf(request.raw, async () => bodyOf(request))
      const begun = await route.begin(incoming, request, hangUpSignal(reply.raw))
      if (begun.kind === 'unprotected') return begun.kind
      if (begun.kind === 'answer') {
        if (headerOf(begun.answer.headers, 'content-type') === null) untyped.add(request)
        reply.send(put(reply, begun.answer))
        return 'answered'
      }
      request.onceonly = begun.protection as Protection<unknown>
      exchanges.set(request, { running: begun, before: new Set(Object.keys(reply.getHeaders())) })
      tapWhenHijacked(request, reply, begun)
      return begun
    }

    /** After authentication and validation, before the handler, which runs when `done` is called, in the same context. */
    function preHandler(request: R, reply: FastifyReplyLike, done: Done): void {
      void goOn(request, reply, done)
    }

    async function goOn(request: R, reply: FastifyReplyLike, done: Done): Promise<void> {
      try {
        const begun = await begin(request, reply)
        if (typeof begun === 'object') begun.inside(done)
        else if (begun === 'unprotected') done()
      } catch (error) {
        done(error as Error)
      }
    }

    /** A hijacked reply is written to Node's response directly, past every hook. */
    function tapWhenHijacked(request: R, reply: FastifyReplyLike, running: Running<Tx>): void {
      const hijack = reply.hijack.bind(reply)
      reply.hijack = () => {
        exchanges.delete(request)
        // The compatible half of HTTP/2 has the same members.
        tapResponse(reply.raw as ServerResponse, { maxBytes: route.maxAnswerBytes, buffered: route.buffered, running })
        return hijack()
      }
    }

    /** What was thrown tells more than the answer that Fastify makes of it. */
    async function onError(request: R, _reply: FastifyReplyLike, error: unknown): Promise<void> {
      const exchange = exchanges.get(request)
      if (exchange !== undefined) exchange.thrown = error
    }

    async function onSend(request: R, reply: FastifyReplyLike, payload: unknown): Promise<unknown> {
      // Fastify names a type for any buffer; an answer that had none is replayed without one.
      if (untyped.delete(request)) reply.removeHeader('content-type')
      const exchange = exchanges.get(request)
      if (exchange === undefined) return payload
      exchanges.delete(request)
      return captured(route, exchange, reply, payload)
    }

    return { definition, preHandler, onError, onSend }
  }
}

function put(reply: FastifyReplyLike, { status, headers, body }: Answer): Buffer | undefined {
  reply.code(status)
  for (const [name, values] of headersByName(headers)) {
    const [only] = values
    reply.header(name, values.length === 1 && only !== undefined ? only : values)
  }
  return hasNoBody(status) ? undefined : Buffer.from(body)
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
    // Fastify tells the length of what a HEAD leaves out, but only after this hook.
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
  if (body instanceof ReadableStream) return body[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>
  const { pipe } = (body ?? {}) as { pipe?: unknown }
  return typeof pipe === 'function' ? bytesOf(body as Readable) : null
}

async function* bytesOf(stream: Readable): AsyncGenerator<Uint8Array, undefined> {
  for await (const chunk of stream as AsyncIterable<string | Uint8Array>) {
    yield typeof chunk === 'string' ? Buffer.from(chunk) : chunk
  }
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
    const answer = await status.answer(request.raw.url ?? '/', request)
    return reply.send(put(reply, answer))
  }
}
