import { Readable } from 'node:stream'
import type { Awaitable } from '../../runtime/runtime.ts'
import { nodeChunks, webChunks } from './chunks.ts'
import { collected } from './collector.ts'
import type { Answer, HeaderList } from './exchange.ts'
import { headerOf } from './exchange.ts'
import { createPassage } from './passage.ts'
import type { Route } from './protect.ts'
import type { Running } from './running.ts'

/** What Fastify and Koa hand over for a response: a text, bytes, or a stream. */

/** A response as its handler gave it. A class for the reason of commands: it leads to the request. */
export class PayloadCapture {
  declare readonly method: string | undefined
  declare readonly status: number
  declare readonly headers: HeaderList
  declare readonly maxBytes: number
  declare readonly buffered: boolean
  declare readonly running: Running<unknown>
  declare readonly thrown: unknown

  constructor(
    method: string | undefined,
    { status, headers }: Pick<PayloadCapture, 'status' | 'headers'>,
    { maxAnswerBytes, buffered }: Pick<Route<never, never>, 'maxAnswerBytes' | 'buffered'>,
    running: Running<unknown>,
    thrown?: unknown,
  ) {
    this.method = method
    this.status = status
    this.headers = headers
    this.maxBytes = maxAnswerBytes
    this.buffered = buffered
    this.running = running
    this.thrown = thrown
  }
}

/** What is to be sent, once the outcome is recorded. */
export type SentPayload =
  | { readonly kind: 'same' }
  /** The same body, read here: its end is held back until the outcome is recorded. */
  | { readonly kind: 'body'; readonly body: Uint8Array | Readable }
  /** The transaction did not commit, so that the handler's response is not true. */
  | { readonly kind: 'instead'; readonly answer: Answer }

const SAME: SentPayload = { kind: 'same' }

/** A promise only where a stream is read, or the store has to be waited for. */
export function capturePayload(payload: unknown, capture: PayloadCapture): Awaitable<SentPayload> {
  const text = typeof payload === 'string' ? payload : undefined
  const whole = text !== undefined ? Buffer.from(text) : payload instanceof Uint8Array ? payload : null
  const stream = whole === null ? streamOf(payload) : null
  if (stream !== null) return captureStream(stream, capture)
  const { status, headers, maxBytes, running, thrown } = capture
  if (capture.method === 'HEAD') {
    // Frameworks add the length of what a HEAD leaves out only when they send it.
    const length = whole === null || headerOf(headers, 'content-length') !== null ? [] : [lengthOf(whole)]
    const over = running.finish({ status, headers: [...headers, ...length], body: new Uint8Array() }, thrown)
    return over instanceof Promise ? over.then(() => SAME) : SAME
  }
  const body = whole ?? new Uint8Array()
  const kept = body.length <= maxBytes ? body : collected(body, maxBytes)
  const answer = running.finish({ status, headers, body: kept, text: text?.isWellFormed() ? text : undefined }, thrown)
  return answer instanceof Promise ? answer.then(instead) : instead(answer)
}

function instead(answer: Answer | null): SentPayload {
  return answer === null ? SAME : { kind: 'instead', answer }
}

async function captureStream(stream: AsyncIterator<Uint8Array>, capture: PayloadCapture): Promise<SentPayload> {
  const { status, headers, maxBytes, running, thrown } = capture
  if (!capture.buffered) return { kind: 'body', body: passing(stream, capture) }
  const body = await wholeOf(stream, running)
  const answer = await running.finish({ status, headers, body: collected(body, maxBytes) }, thrown)
  return answer === null ? { kind: 'body', body } : { kind: 'instead', answer }
}

const lengthOf = (bytes: Uint8Array) => ['content-length', String(bytes.length)] as const

function streamOf(payload: unknown): AsyncIterator<Uint8Array> | null {
  const body = payload instanceof Response ? payload.body : payload
  if (body instanceof ReadableStream) return webChunks(body)
  const { pipe } = (body ?? {}) as { pipe?: unknown }
  return typeof pipe === 'function' ? nodeChunks(body as Readable) : null
}

function passing(stream: AsyncIterator<Uint8Array>, capture: PayloadCapture): Readable {
  const { status, headers, maxBytes, running, thrown } = capture
  const passage = createPassage(stream, { status, headers, maxBytes, running, thrown })
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
