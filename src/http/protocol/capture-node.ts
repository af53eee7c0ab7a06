import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import { Readable } from 'node:stream'
import type { Leaving } from '../../ledger/twins.ts'
import type { Awaitable } from '../../runtime/runtime.ts'
import { createPieces } from '../front/pieces.ts'
import { nodeChunks, webChunks } from './chunks.ts'
import { collected } from './collector.ts'
import type { Answer, HeaderList, Incoming } from './exchange.ts'
import { bodyCut, bodyTooLarge, hasNoBody, headerOf, headersByName } from './exchange.ts'
import type { Passage } from './passage.ts'
import { createPassage } from './passage.ts'
import type { Route } from './protect.ts'
import type { Running } from './running.ts'

/** Everything on Node's own requests and responses that the adapters share: how they are read, captured and sent. */

/** Node's request of either version of the protocol. */
export type NodeRequest = IncomingMessage | Http2ServerRequest

const NONE: readonly string[] = []

/**
 * A request without its body, and its client, which may be gone before it was answered: nothing listens until something is
 * waited for. A class for the reason of commands: V8 would keep its requests until the next full collection.
 */
export class NodeHead<S> implements Omit<Incoming, 'body'>, Leaving {
  declare readonly method: string
  declare readonly target: string
  /** What its body is read from. */
  declare protected readonly source: S
  declare private readonly request: NodeRequest
  declare private readonly response: ServerResponse | Http2ServerResponse | null
  declare private gone: AbortSignal | null

  /** @param response null where its client is not asked about */
  constructor(request: NodeRequest, response: NodeHead<S>['response'], target: string, source: S) {
    this.method = request.method ?? 'GET'
    this.target = target
    this.source = source
    this.request = request
    this.response = response
    this.gone = null
  }

  header(name: string): readonly string[] {
    const { request } = this
    const joined = request.headers[name]
    if (joined === undefined) return NONE
    // HTTP/2 has no distinct lines.
    if (!('headersDistinct' in request)) return [joined].flat()
    // Not `headers`, where Node joins or drops repeated lines, because a doubled key must be seen; nor `headersDistinct`,
    // which is made of all lines for the few names that are looked for.
    const { rawHeaders } = request
    const values: string[] = []
    for (let at = 0; at < rawHeaders.length; at += 2) {
      const each = rawHeaders[at] as string
      if (each.length === name.length && each.toLowerCase() === name) values.push(rawHeaders[at + 1] as string)
    }
    return values
  }

  headers(): HeaderList {
    const { rawHeaders } = this.request
    const list: [string, string][] = []
    for (let at = 0; at < rawHeaders.length; at += 2) {
      const name = (rawHeaders[at] as string).toLowerCase()
      // HTTP/2 has the parts of its first line here, too.
      if (!name.startsWith(':')) list.push([name, rawHeaders[at + 1] as string])
    }
    return list
  }

  get aborted(): boolean {
    const { gone, response } = this
    return gone?.aborted ?? (response !== null && response.closed && !response.writableFinished)
  }

  throwIfAborted(): void {
    if (this.gone !== null || this.response?.closed === true) this.signal().throwIfAborted()
  }

  signal(): AbortSignal {
    if (this.gone !== null) return this.gone
    const { response } = this
    const controller = new AbortController()
    const leave = () => {
      if (response?.writableFinished === false) controller.abort(new Error('The client hung up.'))
    }
    if (response?.closed === true) leave()
    else response?.once('close', leave)
    this.gone = controller.signal
    return controller.signal
  }
}

/** A request of any server on Node, whose body an adapter reads. */
export class NodeIncoming extends NodeHead<Incoming['body']> implements Incoming {
  body(): ReturnType<Incoming['body']> {
    return this.source()
  }
}

/** Whether a request has come with a body, read or not. */
export function bodyOnWire({ headers }: NodeRequest): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

/** For handlers, where no parser has read a body: the value of JSON, other bytes as they are. */
export function parsedJson({ headers }: NodeRequest, bytes: Uint8Array): unknown {
  if (bytes.length === 0) return undefined
  if (!/^[^;]*[/+]json\s*(;|$)/i.test(headers['content-type'] ?? '')) return bytes
  try {
    return JSON.parse(Buffer.from(bytes).toString()) as unknown
  } catch {
    // The fingerprint refuses it.
    return undefined
  }
}

/** Reads the raw bytes, bounded. The connection's own time limits bound how long it may take. */
export function readBody(request: IncomingMessage, maxBytes: number): Promise<Uint8Array> {
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>()
  const pieces = createPieces()
  let bytes = 0
  // By events, because a loop that ends early destroys the request, and the client would never get the reason.
  const stop = () => {
    request.off('data', take).off('end', whole).off('error', cut).off('close', cut)
  }
  const take = (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes <= maxBytes) pieces.add(chunk)
    else {
      stop()
      // The rest is read and dropped while the answer is on its way: a reset would overtake it.
      request.on('error', () => {}).resume()
      reject(bodyTooLarge(maxBytes))
    }
  }
  const whole = () => {
    stop()
    resolve(pieces.takeWhole())
  }
  const cut = (error?: unknown) => {
    stop()
    request.on('error', () => {})
    reject(bodyCut(error))
  }
  if (request.destroyed && !request.complete) cut()
  else request.on('data', take).on('end', whole).on('error', cut).on('close', cut)
  return promise
}

export function sendAnswer(response: ServerResponse, { status, headers, body, text }: Answer): void {
  // The rest of a too large body is not read; on an open connection all of it would have to be.
  if (status === 413) response.setHeader('connection', 'close')
  response.statusCode = status
  for (const [name, value] of headersByName(headers)) response.setHeader(name, value)
  response.end(hasNoBody(status) || response.req.method === 'HEAD' ? undefined : (text ?? body))
}

export function headersOf(response: { getHeaders(): Readonly<OutgoingHttpHeaders> }): HeaderList {
  const list: [string, string][] = []
  const headers = response.getHeaders()
  for (const name in headers) {
    const value = headers[name]
    if (Array.isArray(value)) for (const each of value) list.push([name.toLowerCase(), each])
    else if (value !== undefined) list.push([name.toLowerCase(), String(value)])
  }
  return list
}

/** What is to be sent in place of a handler's payload, once the outcome is recorded. */
export type SentPayload =
  /** The same body, read here: its end is held back until the outcome is recorded. */
  | { readonly kind: 'body'; readonly body: Uint8Array | Readable }
  /** The transaction did not commit, so that the handler's response is not true. */
  | { readonly kind: 'instead'; readonly answer: Answer }

/** A response as its handler gave it, without its body. */
export interface PayloadHead {
  readonly method: string | undefined
  readonly status: number
  readonly headers: HeaderList
}

const NO_BYTES = new Uint8Array()

type Limits = Pick<Route<never, never>, 'maxAnswerBytes' | 'buffered'>

/**
 * Records what Fastify and Koa hand over for a response: a text, bytes, or a stream. Null where it leaves as it is. A promise
 * only where a stream is read, or the store has to be waited for.
 */
export function capturePayload(
  payload: unknown,
  head: PayloadHead,
  limits: Limits,
  running: Running<unknown>,
  thrown?: unknown,
): Awaitable<SentPayload | null> {
  const given = typeof payload === 'string' ? payload : undefined
  const whole = given !== undefined ? Buffer.from(given) : payload instanceof Uint8Array ? payload : null
  const stream = whole === null ? streamOf(payload) : null
  if (stream !== null) return captureStream(stream, head, limits, running, thrown)
  const { status, headers } = head
  if (head.method === 'HEAD') {
    // Frameworks add the length of what a HEAD leaves out only when they send it.
    const length = whole === null || headerOf(headers, 'content-length') !== null ? [] : [lengthOf(whole)]
    const over = running.finish({ status, headers: [...headers, ...length], body: new Uint8Array() }, thrown)
    return over instanceof Promise ? over.then(() => null) : null
  }
  const bytes = whole ?? NO_BYTES
  const body = bytes.length <= limits.maxAnswerBytes ? bytes : collected(bytes, limits.maxAnswerBytes)
  const text = given?.isWellFormed() === true ? given : undefined
  const answer = running.finish({ status, headers, body, text }, thrown)
  if (answer instanceof Promise) return answer.then((known) => (known === null ? null : instead(known)))
  return answer === null ? null : instead(answer)
}

const instead = (answer: Answer): SentPayload => ({ kind: 'instead', answer })

async function captureStream(
  stream: AsyncIterator<Uint8Array>,
  { status, headers }: PayloadHead,
  { maxAnswerBytes: maxBytes, buffered }: Limits,
  running: Running<unknown>,
  thrown: unknown,
): Promise<SentPayload> {
  if (!buffered) {
    const passage = createPassage(stream, { status, headers, maxBytes, running, thrown })
    return { kind: 'body', body: readableOf(passage) }
  }
  const body = await wholeOf(stream, running)
  const answer = await running.finish({ status, headers, body: collected(body, maxBytes) }, thrown)
  return answer === null ? { kind: 'body', body } : instead(answer)
}

const lengthOf = (bytes: Uint8Array) => ['content-length', String(bytes.length)] as const

function streamOf(payload: unknown): AsyncIterator<Uint8Array> | null {
  const body = payload instanceof Response ? payload.body : payload
  if (body instanceof ReadableStream) return webChunks(body)
  const { pipe } = (body ?? {}) as { pipe?: unknown }
  return typeof pipe === 'function' ? nodeChunks(body as Readable) : null
}

function readableOf(passage: Passage): Readable {
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
  return readable
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
