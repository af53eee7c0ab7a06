import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable, Transform } from 'node:stream'
import { hangUpSignal, incomingOf, tapResponse } from '../capture-node.ts'
import { createCollector } from '../collector.ts'
import type { HeaderList } from '../exchange.ts'
import type { HttpOptions, Protection, Running } from '../protect.ts'
import { createRoute } from '../protect.ts'
import { hasNoBody } from '../record.ts'
import type { RouteDefinition } from '../route.ts'

/** As much of Fastify 5 as we use: the borrowed framework is never imported. */
export interface FastifyRequestLike {
  readonly raw: IncomingMessage
  rawBody?: Uint8Array
  /** Set while the request is protected. */
  onceonly?: Protection<unknown> | null
}

export interface FastifyReplyLike {
  readonly raw: ServerResponse
  readonly statusCode: number
  code(status: number): unknown
  header(name: string, value: string): unknown
  getHeaders(): Record<string, number | string | string[] | undefined>
  send(payload?: unknown): unknown
  hijack(): unknown
}

interface FastifyLike {
  addContentTypeParser(
    type: string | string[],
    options: { parseAs: 'buffer' },
    parser: (request: never, body: Buffer, done: Done) => void,
  ): unknown
  getDefaultJsonParser(proto: 'error', constructor: 'error'): (request: never, body: string, done: Done) => void
  removeContentTypeParser(type: string | string[]): unknown
  decorateRequest(name: string, value: null): unknown
  hasRequestDecorator(name: string): boolean
}

type Done = (error: Error | null, body?: unknown) => void

/**
 * Keeps the raw bytes beside the parsed body. An own buffer parser costs little; reading through `preParsing` halves the
 * throughput.
 */
export function keepRawBodies(app: FastifyLike): void {
  if (app.hasRequestDecorator('rawBody')) return
  app.decorateRequest('rawBody', null)
  app.decorateRequest('onceonly', null)
  const json = app.getDefaultJsonParser('error', 'error')
  app.removeContentTypeParser(['application/json', 'text/plain'])
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    ;(request as FastifyRequestLike).rawBody = body
    json(request, body.toString(), done)
  })
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (request, body, done) => {
    ;(request as FastifyRequestLike).rawBody = body
    done(null, body)
  })
}

const NO_BODY = new Uint8Array()

/** Hooks for one route: `app.post('/payments', protect({ effect: 'external' }), handler)`; `request.onceonly` is the protection. */
export function idempotent<Tx, R extends FastifyRequestLike>(app: FastifyLike, options: HttpOptions<R, Tx>) {
  keepRawBodies(app)
  return (definition: RouteDefinition<R>) => {
    const route = createRoute(options, definition)
    const running = new WeakMap<object, Running<Tx>>()
    const thrown = new WeakMap<object, unknown>()

    /** After authentication and validation, before the handler. */
    async function preHandler(request: R, reply: FastifyReplyLike): Promise<unknown> {
      const begun = await route.begin(
        incomingOf(request.raw, request.rawBody ?? NO_BODY),
        request,
        hangUpSignal(reply.raw),
      )
      if (begun.kind === 'unprotected') return undefined
      if (begun.kind === 'answer') {
        const { status, headers, body } = begun.answer
        reply.code(status)
        for (const [name, value] of headers) reply.header(name, value)
        return reply.send(hasNoBody(status) ? undefined : Buffer.from(body))
      }
      request.onceonly = begun.protection as Protection<unknown>
      running.set(request, begun)
      tapWhenHijacked(request, reply, begun)
      return undefined
    }

    /** A hijacked reply is written to Node's response directly, past every hook. */
    function tapWhenHijacked(request: R, reply: FastifyReplyLike, begun: Running<Tx>): void {
      const hijack = reply.hijack.bind(reply)
      reply.hijack = () => {
        running.delete(request)
        tapResponse(reply.raw, { maxBytes: route.maxAnswerBytes, buffered: route.buffered, finish: begun.finish })
        return hijack()
      }
    }

    /** What was thrown tells more than the 500 that Fastify makes of it. */
    async function onError(request: R, _reply: FastifyReplyLike, error: unknown): Promise<void> {
      if (running.has(request)) thrown.set(request, error)
    }

    async function onSend(request: R, reply: FastifyReplyLike, payload: unknown): Promise<unknown> {
      const begun = running.get(request)
      if (begun === undefined) return payload
      running.delete(request)
      const error = thrown.get(request)
      if (error !== undefined && reply.statusCode >= 500) {
        await begun.fail(error)
        return payload
      }
      const stream = payload instanceof ReadableStream ? Readable.fromWeb(payload as never) : payload
      if (stream instanceof Readable) return tapped(stream, reply, begun)
      const body = typeof stream === 'string' ? Buffer.from(stream) : stream instanceof Uint8Array ? stream : NO_BODY
      await begun.finish({ status: reply.statusCode, headers: headersOf(reply), body: collected(body) })
      return payload
    }

    function collected(body: Uint8Array) {
      const collector = createCollector(route.maxAnswerBytes)
      collector.add(body)
      return collector.body()
    }

    function tapped(stream: Readable, reply: FastifyReplyLike, begun: Running<Tx>): Readable {
      const collector = createCollector(route.maxAnswerBytes)
      const held: Buffer[] = []
      const tap = new Transform({
        transform(chunk: Buffer, _encoding, done) {
          collector.add(Uint8Array.prototype.slice.call(chunk))
          if (route.buffered) held.push(chunk)
          done(null, route.buffered ? undefined : chunk)
        },
        flush(done) {
          const captured = { status: reply.statusCode, headers: headersOf(reply), body: collector.body() }
          begun.finish(captured).then(() => {
            for (const chunk of held) this.push(chunk)
            done()
          }, done)
        },
      })
      stream.once('error', (error) => {
        void begun.fail(error)
        tap.destroy(error)
      })
      return stream.pipe(tap)
    }

    return { preHandler, onError, onSend }
  }
}

function headersOf(reply: FastifyReplyLike): HeaderList {
  const list: [string, string][] = []
  for (const [name, value] of Object.entries(reply.getHeaders())) {
    if (value === undefined) continue
    for (const each of Array.isArray(value) ? value : [value]) list.push([name.toLowerCase(), String(each)])
  }
  return list
}
