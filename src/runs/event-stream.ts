import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { jsonText } from '../ledger/core/json-text.ts'
import { limits } from '../ledger/core/limits.ts'
import { checkOptions } from '../ledger/core/option-names.ts'
import type { RunHandle } from './engine.ts'
import type { OutputPage } from './outputs.ts'

/** The part of a run's handle that a stream of its events needs. */
type Source = Pick<RunHandle<unknown>, 'eventPage'>

export interface EventStreamOptions {
  /** Where to begin, for clients that send no `Last-Event-ID`. @default 0, from the first event on */
  readonly after?: number
}

const headers = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store',
  // Proxies that gather would hold events back.
  'x-accel-buffering': 'no',
}

/** No event that a run emits has a name that begins so. */
const ENDED = ':ended'

/**
 * The events of a run as server-sent events, for frameworks that answer with a `Response`. A client that was cut off
 * continues behind the last event it saw, by `Last-Event-ID`. Behind the last event of a run that has ended comes the event
 * `:ended` with its state, and a client that connects once more gets 204, which ends an `EventSource`.
 *
 * @example
 * ```ts
 * import type { Engine } from 'onceonly/run'
 * import { eventsResponse } from 'onceonly/run'
 *
 * export const GET = (engine: Engine, runId: string, request: Request) => eventsResponse(engine.handle(runId), request)
 * ```
 */
export async function eventsResponse(
  handle: Source,
  request: Pick<Request, 'headers' | 'signal'>,
  options: EventStreamOptions = {},
): Promise<Response> {
  const last = request.headers.get('last-event-id')
  const frames = await open(handle, last, options, request.signal)
  if (frames === null) return new Response(null, { status: 204 })
  const encoder = new TextEncoder()
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await frames.next()
      if (done === true) controller.close()
      else controller.enqueue(encoder.encode(value))
    },
    cancel: () => void frames.return(undefined),
  })
  return new Response(body, { headers })
}

/**
 * The same for Node's own server, and for frameworks on it. Resolves when the last event was sent, or the client has left.
 *
 * @example
 * ```ts
 * import type { IncomingMessage, ServerResponse } from 'node:http'
 * import type { Engine } from 'onceonly/run'
 * import { sendEvents } from 'onceonly/run'
 *
 * export const progress = (engine: Engine, runId: string) => (request: IncomingMessage, response: ServerResponse) =>
 *   sendEvents(engine.handle(runId), request, response)
 * ```
 */
export async function sendEvents(
  handle: Source,
  request: IncomingMessage,
  response: ServerResponse,
  options: EventStreamOptions = {},
): Promise<void> {
  const left = new AbortController()
  response.once('close', () => left.abort())
  const last = request.headers['last-event-id']
  const frames = await open(handle, typeof last === 'string' ? last : null, options, left.signal)
  if (frames === null) {
    response.writeHead(204).end()
    return
  }
  response.writeHead(200, headers)
  response.flushHeaders()
  for await (const frame of frames) {
    if (left.signal.aborted) return
    if (!response.write(frame)) await Promise.race([once(response, 'drain'), once(response, 'close')])
  }
  response.end()
}

/** Null where a client that has seen everything asks again. */
async function open(
  handle: Source,
  lastEventId: string | null,
  options: EventStreamOptions,
  signal: AbortSignal,
): Promise<AsyncGenerator<string, undefined> | null> {
  checkOptions('The stream of events', options, { after: true })
  // An id that is not ours says nothing: the stream begins again.
  const seen = lastEventId !== null && /^\d{1,15}$/.test(lastEventId) ? Number(lastEventId) : null
  const first = await handle.eventPage({ after: seen ?? options.after ?? 0 })
  return seen !== null && first.ended && first.events.length === 0 ? null : framesOf(handle, first, signal)
}

async function* framesOf(handle: Source, first: OutputPage, signal: AbortSignal): AsyncGenerator<string, undefined> {
  let page = first
  for (;;) {
    for (const { cursor, name, value } of page.events) yield frameOf(cursor, name, value)
    if (page.ended) {
      yield frameOf(page.cursor, ENDED, { state: page.state })
      return
    }
    if (signal.aborted) return
    const before = page.cursor
    page = await handle.eventPage({ after: before, waitMs: limits.runEventPulseMs, signal })
    // A line without a meaning shows that the connection lives, to proxies as well.
    if (page.cursor === before && !page.ended) yield ':\n\n'
  }
}

function frameOf(id: number, name: string, value: unknown): string {
  return `id: ${id}\nevent: ${name}\ndata: ${jsonText(value ?? null)}\n\n`
}
