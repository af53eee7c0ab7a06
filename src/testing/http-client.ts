import { connect } from 'node:net'

/**
 * A client that hides nothing: it writes the bytes of a request itself, and shows the bytes of the answer as they came.
 */

export interface RawRequest {
  readonly method?: string
  readonly target: string
  /** Written line by line, also twice; values as Latin-1, so that any byte can be sent. */
  readonly headers?: readonly (readonly [name: string, value: string])[]
  readonly body?: string | Uint8Array
  /** Sends the body in chunks of a few bytes, without declaring its length. */
  readonly chunked?: boolean
  /** Sends only so many bytes of the body, and then nothing. */
  readonly cutAfter?: number
  /** Reads nothing of the answer. */
  readonly deaf?: boolean
}

export interface Reply {
  readonly status: number
  /** In order, names in lower case. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: Buffer
  /** False where the connection ended in the middle. */
  readonly whole: boolean
  readonly firstByteAt: number
  readonly endedAt: number
  header(name: string): string | null
  all(name: string): string[]
  text(): string
  // oxlint-disable-next-line typescript/no-explicit-any -- what a body holds is the test's own business.
  json(): any
}

export interface HttpExchange {
  /** Resolves with all that came, when the connection is over. */
  readonly reply: Promise<Reply>
  /** Resolves when the first bytes of the answer are here. */
  readonly begun: Promise<void>
  /** Resolves when so much of the answer, head included, is here. */
  received(text: string): Promise<void>
  /** As a process that dies: no word, no waiting. */
  hangUp(): void
}

export function exchange(port: number, request: RawRequest): HttpExchange {
  const chunks: Buffer[] = []
  const ended = Promise.withResolvers<Reply>()
  const begun = Promise.withResolvers<void>()
  const waiting = new Set<() => void>()
  let firstByteAt = Number.POSITIVE_INFINITY
  const method = request.method ?? 'POST'
  const socket = connect(port, '127.0.0.1', () => socket.write(requestBytes(method, request)))
  socket.on('data', (chunk) => {
    if (chunks.length === 0) firstByteAt = performance.now()
    chunks.push(chunk)
    begun.resolve()
    for (const look of waiting) look()
  })
  if (request.deaf === true) socket.pause()
  // A reset is one of the ways in which an answer ends; what came before it counts.
  socket.on('error', () => {})
  socket.on('close', () => {
    begun.resolve()
    const times = { firstByteAt, endedAt: performance.now() }
    try {
      ended.resolve(parse(Buffer.concat(chunks), method, times))
    } catch (error) {
      ended.reject(error)
    }
  })
  ended.promise.catch(() => {})
  return {
    reply: ended.promise,
    begun: begun.promise,
    received: (text) =>
      new Promise((resolve) => {
        const look = () => {
          if (!Buffer.concat(chunks).includes(text)) return
          waiting.delete(look)
          resolve()
        }
        waiting.add(look)
        look()
      }),
    hangUp: () => void socket.destroy(),
  }
}

function requestBytes(method: string, { target, headers = [], body, chunked, cutAfter }: RawRequest): Buffer {
  const bytes = body === undefined ? Buffer.alloc(0) : Buffer.from(body as string)
  const length = body === undefined ? [] : [`content-length: ${bytes.length}`]
  const lines = [
    `${method} ${target} HTTP/1.1`,
    'host: conformance.test',
    'connection: close',
    ...headers.map(([name, value]) => `${name}: ${value}`),
    ...(chunked === true ? ['transfer-encoding: chunked'] : length),
    '',
    '',
  ]
  const head = Buffer.from(lines.join('\r\n'), 'latin1')
  return Buffer.concat([head, chunked === true ? inChunks(bytes) : bytes.subarray(0, cutAfter ?? bytes.length)])
}

const CHUNK_BYTES = 7

function inChunks(bytes: Buffer): Buffer {
  const parts: Buffer[] = []
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
    const part = bytes.subarray(at, at + CHUNK_BYTES)
    parts.push(Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n'))
  }
  return Buffer.concat([...parts, Buffer.from('0\r\n\r\n')])
}

function parse(bytes: Buffer, method: string, times: Pick<Reply, 'firstByteAt' | 'endedAt'>): Reply {
  const headEnd = bytes.indexOf('\r\n\r\n')
  if (headEnd < 0) throw new Error(`the connection ended after ${bytes.length} bytes, before an answer`)
  const [statusLine = '', ...lines] = bytes.subarray(0, headEnd).toString('latin1').split('\r\n')
  const status = Number(statusLine.split(' ')[1])
  const headers = lines.map((line): [string, string] => {
    const colon = line.indexOf(':')
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
  })
  const all = (name: string) => headers.filter(([each]) => each === name).map(([, value]) => value)
  const rest = bytes.subarray(headEnd + 4)
  const { body, whole } = bodyOf(rest, method, status, all)
  const text = () => body.toString('utf8')
  return {
    status,
    headers,
    body,
    whole,
    ...times,
    all,
    header: (name) => all(name)[0] ?? null,
    text,
    json: () => JSON.parse(text()) as unknown,
  }
}

function bodyOf(
  rest: Buffer,
  method: string,
  status: number,
  all: (name: string) => string[],
): { readonly body: Buffer; readonly whole: boolean } {
  if (method === 'HEAD' || status === 204 || status === 304) return { body: rest, whole: true }
  if (all('transfer-encoding').includes('chunked')) return dechunked(rest)
  const [length] = all('content-length')
  return { body: rest, whole: length === undefined || Number(length) === rest.length }
}

function dechunked(rest: Buffer): { readonly body: Buffer; readonly whole: boolean } {
  const parts: Buffer[] = []
  let at = 0
  for (;;) {
    const lineEnd = rest.indexOf('\r\n', at)
    const size = lineEnd < 0 ? Number.NaN : Number.parseInt(rest.subarray(at, lineEnd).toString('latin1'), 16)
    if (Number.isNaN(size)) return { body: Buffer.concat(parts), whole: false }
    if (size === 0) return { body: Buffer.concat(parts), whole: rest.indexOf('\r\n\r\n', at) >= 0 }
    parts.push(rest.subarray(lineEnd + 2, lineEnd + 2 + size))
    at = lineEnd + 2 + size + 2
  }
}
