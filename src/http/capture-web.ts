import { createCollector } from './collector.ts'
import type { Answer, Captured, HeaderList, Incoming } from './exchange.ts'
import type { Running } from './protect.ts'
import { hasNoBody } from './record.ts'

/** Everything on web-standard `Request` and `Response` that the fetch and Hono adapters share. */

export function incomingOf(request: Request, body: Uint8Array): Incoming {
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
  }
}

export function responseOf({ status, headers, body }: Answer): Response {
  const list = new Headers()
  for (const [name, value] of headers) list.append(name, value)
  return new Response(hasNoBody(status) ? null : (body as Uint8Array<ArrayBuffer>), { status, headers: list })
}

interface Capture<Tx> {
  readonly maxBytes: number
  readonly buffered: boolean
  readonly running: Running<Tx>
}

/** Passes an answer on while it is collected; its end is held back until the outcome is recorded. */
export async function captureResponse<Tx>(response: Response, capture: Capture<Tx>): Promise<Response> {
  const { running } = capture
  const collector = createCollector(capture.maxBytes)
  const captured = (): Captured => ({ status: response.status, headers: headersOf(response), body: collector.body() })
  if (response.body === null) {
    await running.finish(captured())
    return response
  }
  if (!capture.buffered)
    return new Response(
      tapped(response.body, collector.add, () => running.finish(captured()), running.fail),
      response,
    )
  const bytes = new Uint8Array(await response.arrayBuffer())
  collector.add(bytes)
  await running.finish(captured())
  return new Response(bytes, response)
}

/** A client that stops reading does not stop the handler's answer from being read to its end, and recorded. */
function tapped(
  body: ReadableStream<Uint8Array>,
  add: (chunk: Uint8Array) => void,
  finish: () => Promise<void>,
  fail: (error: unknown) => Promise<void>,
): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  async function next(): Promise<Uint8Array | null> {
    try {
      const { done, value } = await reader.read()
      if (!done) {
        add(value)
        return value
      }
    } catch (error) {
      await fail(error)
      throw error
    }
    await finish()
    return null
  }
  return new ReadableStream({
    async pull(controller) {
      const chunk = await next()
      if (chunk === null) controller.close()
      else controller.enqueue(chunk)
    },
    async cancel() {
      while ((await next()) !== null);
    },
  })
}

function headersOf(response: Response): HeaderList {
  const list: [string, string][] = []
  response.headers.forEach((value, name) => {
    if (name !== 'set-cookie') list.push([name, value])
  })
  return list
}
