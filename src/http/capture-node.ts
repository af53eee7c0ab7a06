import type { IncomingMessage, ServerResponse } from 'node:http'
import { createCollector } from './collector.ts'
import type { Answer, Captured, HeaderList, Incoming } from './exchange.ts'
import { hasNoBody } from './record.ts'

/** Everything on Node's own request and response that the adapters for Node, Express and Fastify share. */

export function incomingOf(request: IncomingMessage, body: Uint8Array, target = request.url ?? '/'): Incoming {
  return {
    method: request.method ?? 'GET',
    target,
    body,
    // Not `headers`: there Node joins or drops repeated lines, and a doubled key must be seen.
    header: (name) => request.headersDistinct[name] ?? [],
  }
}

export class BodyTooLarge extends Error {
  readonly status = 413
}

/** Reads the raw bytes, bounded. The connection's own time limits bound how long it may take. */
export async function readBody(request: IncomingMessage, maxBytes: number): Promise<Uint8Array> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > maxBytes) throw new BodyTooLarge(`The body is larger than ${maxBytes} bytes.`)
    chunks.push(chunk)
  }
  return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks, bytes)
}

export function sendAnswer(response: ServerResponse, { status, headers, body }: Answer): void {
  response.statusCode = status
  for (const [name, value] of headers) response.appendHeader(name, value)
  response.end(hasNoBody(status) || response.req.method === 'HEAD' ? undefined : body)
}

/** Aborted when the client is gone before it was answered. */
export function hangUpSignal(response: ServerResponse): AbortSignal {
  const controller = new AbortController()
  response.once('close', () => {
    if (!response.writableFinished) controller.abort(new Error('The client hung up.'))
  })
  return controller.signal
}

type Chunk = string | Uint8Array
type Callback = (error?: Error | null) => void

/**
 * Listens to an answer while it is written. Bytes pass on at once, the end is held back until `finish` has recorded the
 * outcome; a buffered answer passes on nothing before that. A client that hung up changes nothing of it.
 */
export function tapResponse(
  response: ServerResponse,
  { maxBytes, buffered, finish }: { maxBytes: number; buffered: boolean; finish(captured: Captured): Promise<void> },
): void {
  const collector = createCollector(maxBytes)
  const held: Uint8Array[] = []
  const write = response.write.bind(response) as (chunk: Uint8Array, done?: Callback) => boolean
  const end = response.end.bind(response) as (done?: Callback) => ServerResponse
  const writeHead = response.writeHead.bind(response)
  let ended = false

  function take(chunk: Chunk, encoding: BufferEncoding | undefined): Uint8Array {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk, encoding ?? 'utf8') : chunk
    // The application may reuse its buffer as soon as we return.
    const copy = Uint8Array.prototype.slice.call(bytes)
    collector.add(copy)
    return copy
  }

  response.writeHead = ((status: number, ...rest: unknown[]) => {
    // Headers given here would pass by `getHeaders`, and so by the record.
    response.statusCode = status
    const headers = rest.find((each) => typeof each === 'object' && each !== null)
    for (const [name, value] of pairsOf(headers)) response.setHeader(name, value)
    return buffered ? response : writeHead(status)
  }) as typeof response.writeHead

  response.write = ((chunk: Chunk, encoding?: BufferEncoding | Callback, done?: Callback) => {
    const bytes = take(chunk, typeof encoding === 'string' ? encoding : undefined)
    const after = typeof encoding === 'function' ? encoding : done
    if (!buffered) return write(bytes, after)
    held.push(bytes)
    after?.()
    return true
  }) as typeof response.write

  response.end = ((chunk?: Chunk | Callback | null, encoding?: BufferEncoding | Callback, done?: Callback) => {
    if (ended) return response
    ended = true
    const last =
      typeof chunk === 'string' || chunk instanceof Uint8Array
        ? take(chunk, typeof encoding === 'string' ? encoding : undefined)
        : null
    const after = [chunk, encoding, done].find((each) => typeof each === 'function') as Callback | undefined
    const captured = { status: response.statusCode, headers: headersOf(response), body: collector.body() }
    const release = () => {
      for (const bytes of held) write(bytes)
      if (last !== null) write(last)
      end(after)
    }
    // What is left of the answer leaves whether or not recording worked: the effect happened.
    finish(captured).then(release, release)
    return response
  }) as typeof response.end
}

function pairsOf(headers: unknown): [string, string | string[]][] {
  if (typeof headers !== 'object' || headers === null) return []
  if (!Array.isArray(headers)) return Object.entries(headers) as [string, string | string[]][]
  const pairs: [string, string][] = []
  for (let at = 0; at + 1 < headers.length; at += 2) pairs.push([String(headers[at]), String(headers[at + 1])])
  return pairs
}

function headersOf(response: ServerResponse): HeaderList {
  const list: [string, string][] = []
  for (const [name, value] of Object.entries(response.getHeaders())) {
    if (value === undefined) continue
    for (const each of Array.isArray(value) ? value : [value]) list.push([name.toLowerCase(), String(each)])
  }
  return list
}
