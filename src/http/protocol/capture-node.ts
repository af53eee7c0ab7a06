import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import type { Leaving } from '../../ledger/twins.ts'
import { createPieces } from '../front/pieces.ts'
import type { Answer, HeaderList, Incoming } from './exchange.ts'
import { bodyCut, bodyTooLarge, hasNoBody, headersByName } from './exchange.ts'

/** Everything on Node's own request and response that the adapters for Node, Express and Fastify share. */

/** Node's request of either version of the protocol. */
export type NodeRequest = IncomingMessage | Http2ServerRequest

const NONE: readonly string[] = []

export function incomingOf(request: NodeRequest, body: Incoming['body'], target = request.url ?? '/'): Incoming {
  return new NodeIncoming(request, body, target)
}

/** A class for the reason of commands: V8 would keep its requests until the next full collection. */
class NodeIncoming implements Incoming {
  declare readonly method: string
  declare readonly target: string
  declare readonly body: Incoming['body']
  declare private readonly request: NodeRequest

  constructor(request: NodeRequest, body: Incoming['body'], target: string) {
    this.method = request.method ?? 'GET'
    this.target = target
    this.body = body
    this.request = request
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

/** A client that may be gone before it was answered. Nothing listens until something is waited for. */
export class NodeClient implements Leaving {
  readonly #response: ServerResponse | Http2ServerResponse
  #signal: AbortSignal | null = null

  constructor(response: ServerResponse | Http2ServerResponse) {
    this.#response = response
  }

  get aborted(): boolean {
    return this.#signal?.aborted ?? (this.#response.closed && !this.#response.writableFinished)
  }

  throwIfAborted(): void {
    if (this.aborted) this.signal().throwIfAborted()
  }

  signal(): AbortSignal {
    if (this.#signal !== null) return this.#signal
    const response = this.#response
    const controller = new AbortController()
    const gone = () => {
      if (!response.writableFinished) controller.abort(new Error('The client hung up.'))
    }
    if (response.closed) gone()
    else response.once('close', gone)
    this.#signal = controller.signal
    return controller.signal
  }
}
