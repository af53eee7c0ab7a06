import type { Awaitable } from '../../runtime/runtime.ts'
import { createPieces } from '../front/pieces.ts'
import { webChunks } from './chunks.ts'
import { collected } from './collector.ts'
import type { Answer, Captured, HeaderList, Incoming } from './exchange.ts'
import { bodyCut, bodyTooLarge, hasNoBody } from './exchange.ts'
import { untilBegun } from './leaving.ts'
import { createPassage } from './passage.ts'
import type { Running } from './running.ts'

/** Everything on web-standard `Request` and `Response` that the fetch and Hono adapters share. */

export function incomingOf(request: Request, body: Incoming['body']): Incoming {
  const url = new URL(request.url)
  return {
    method: request.method,
    target: url.pathname + url.search,
    body,
    // Repeated lines arrive joined by a comma here, and a comma in a key is refused.
    header: (name) => {
      const value = request.headers.get(name)
      return value === null ? [] : [value]
    },
    headers: () => [...request.headers],
  }
}

/** Reads the raw bytes, bounded. */
export async function readBody(request: Request, maxBytes: number): Promise<Uint8Array> {
  if (request.body === null) return new Uint8Array()
  const pieces = createPieces()
  let bytes = 0
  try {
    for await (const chunk of request.body) {
      bytes += chunk.length
      if (bytes > maxBytes) break
      pieces.add(chunk)
    }
  } catch (error) {
    throw bodyCut(error)
  }
  if (bytes > maxBytes) throw bodyTooLarge(maxBytes)
  return pieces.takeWhole()
}

/**
 * A request whose body was read for the fingerprint, and can be read again. Made of its parts, because Next.js hands over a
 * proxy of a request, which the constructor does not take for one.
 */
export function readableAgain(request: Request, body: Uint8Array): Request {
  if (request.body === null) return request
  const { url, method, headers, signal, redirect } = request
  return new Request(url, { method, headers, signal, redirect, body: body as Uint8Array<ArrayBuffer> })
}

export function responseOf({ status, headers, body }: Answer): Response {
  const list = new Headers()
  for (const [name, value] of headers) list.append(name, value)
  // An empty body is none: a server would name a type for it.
  const none = hasNoBody(status) || body.length === 0
  return new Response(none ? null : (body as Uint8Array<ArrayBuffer>), { status, headers: list })
}

export interface Capture {
  readonly method: string
  /** Fires when the client hung up: some servers then never look at the answer. */
  readonly signal: AbortSignal
  readonly maxBytes: number
  readonly buffered: boolean
  readonly running: Running<unknown>
  readonly thrown?: unknown
  readonly idleMs?: number
}

/**
 * The handler's response; or 202, when its caller has waited long enough. Then the handler's response is read to its end here.
 *
 * @param answered runs the handler; the signal fires when its client hung up
 * @param failed gets errors after the 202
 */
export async function answeredInTime(
  { early }: Pick<Running<unknown>, 'early'>,
  signal: AbortSignal,
  answered: (signal: AbortSignal) => Promise<Response>,
  failed: (error: unknown) => void,
): Promise<Response> {
  if (early === null) return answered(signal)
  const client = untilBegun(signal)
  const accept = () => {
    const answer = early.answer()
    // Some servers abort the signal of a request that has its answer.
    if (answer !== null) client.stop()
    return answer
  }
  let accepted = early.waitMs === 0 ? accept() : null
  const response = answered(client.signal)
  if (early.waitMs > 0 && !(await isAnswered(response, early.waitMs)) && !signal.aborted) accepted = accept()
  if (accepted === null) return response
  void readToTheEnd(response).catch(failed)
  return responseOf(accepted)
}

async function isAnswered(response: Promise<unknown>, waitMs: number): Promise<boolean> {
  const late = Promise.withResolvers<boolean>()
  const timer = setTimeout(late.resolve, waitMs, false)
  try {
    return await Promise.race([response.then(() => true), late.promise])
  } finally {
    clearTimeout(timer)
  }
}

async function readToTheEnd(response: Promise<Response>): Promise<void> {
  await (await response).body?.pipeTo(new WritableStream())
}

/** Passes an answer on while it is collected; its end is held back until the outcome is recorded. */
export async function captureResponse(response: Response, capture: Capture): Promise<Response> {
  const { running, maxBytes, thrown } = capture
  const { status, body } = response
  const headers = headersOf(response)
  const finish = (whole: Captured['body']) => running.finish({ status, headers, body: whole }, thrown)
  if (body === null || capture.method === 'HEAD') {
    const instead = await finish(new Uint8Array())
    void body?.cancel().catch(() => {})
    if (instead !== null) return responseOf(instead)
    return body === null ? response : new Response(null, response)
  }
  if (capture.buffered) return wholeResponse(response, capture, finish)
  const passage = createPassage(webChunks(body), { status, headers, maxBytes, running, thrown, idleMs: capture.idleMs })
  if (capture.signal.aborted) passage.leave()
  else capture.signal.addEventListener('abort', () => passage.leave(), { once: true })
  const stream = new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      async pull(controller) {
        const chunk = await passage.read()
        if (chunk === null) controller.close()
        else controller.enqueue(chunk as Uint8Array<ArrayBuffer>)
      },
      cancel: () => passage.leave(),
    },
    // The passage reads ahead by itself.
    { highWaterMark: 0 },
  )
  return new Response(stream, response)
}

async function wholeResponse(
  response: Response,
  { running, maxBytes }: Capture,
  finish: (whole: Captured['body']) => Awaitable<Answer | null>,
): Promise<Response> {
  let bytes: Uint8Array<ArrayBuffer>
  try {
    bytes = new Uint8Array(await response.arrayBuffer())
  } catch (error) {
    await running.fail(error)
    throw error
  }
  const instead = await finish(collected(bytes, maxBytes))
  return instead === null ? new Response(bytes, response) : responseOf(instead)
}

function headersOf(response: Response): HeaderList {
  return [...response.headers]
}
