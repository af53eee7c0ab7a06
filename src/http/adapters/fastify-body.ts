import { isUtf8 } from 'node:buffer'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { bodyOnWire, NodeHead } from '../protocol/capture-node.ts'
import type { Incoming, IncomingBody } from '../protocol/exchange.ts'
import { noBody } from '../protocol/exchange.ts'
import { bodyConsumed } from '../protocol/options.ts'

/** The request of any server and route, which differ in their types only. */
// oxlint-disable-next-line typescript/no-explicit-any -- every server, provider and logger has types of its own.
export type AnyRequest = FastifyRequest<any, any, any, any, any, any, any>

type Parsed = (error: Error | null, body?: unknown) => void

/** On the request itself: a table that holds requests weakly costs every garbage collection. */
const rawBody = Symbol('onceonly.rawBody')

interface Marked {
  [rawBody]?: Uint8Array
}

/**
 * Keeps the raw bytes of JSON and text beside what is parsed of them. An own buffer parser costs little; reading through
 * `preParsing` halves the throughput. Parsers of the application stay: a buffer or a string of theirs is as good.
 */
export function keepRawBodies(app: FastifyInstance): void {
  const json = app.getDefaultJsonParser('error', 'error')
  addParser(app, 'application/json', (request, body, done) => {
    ;(request as Marked)[rawBody] = body
    // Read as text, bytes that are not UTF-8 would become other text, and different bodies the same.
    if (isUtf8(body)) void json(request, body.toString(), done)
    else done(Object.assign(new Error('The body is not UTF-8'), { statusCode: 400 }))
  })
  addParser(app, 'text/plain', (request, body, done) => {
    ;(request as Marked)[rawBody] = body
    done(null, body.toString())
  })
}

function addParser(
  app: FastifyInstance,
  type: string,
  parse: (request: FastifyRequest, body: Buffer, done: Parsed) => void,
): void {
  try {
    app.addContentTypeParser<Buffer>(type, { parseAs: 'buffer' }, parse)
  } catch (error) {
    // Fastify's own parsers may be replaced; this one is the application's.
    if ((error as { code?: unknown }).code !== 'FST_ERR_CTP_ALREADY_PRESENT') throw error
  }
}

/** A request whose body Fastify has read. */
export class FastifyIncoming extends NodeHead<AnyRequest> implements Incoming {
  body(): IncomingBody {
    const { source: request } = this
    const raw = (request as Marked)[rawBody]
    if (raw !== undefined) return { bytes: raw }
    const body = request.body as unknown
    if (body instanceof Uint8Array) return { bytes: body }
    if (typeof body === 'string') return { bytes: Buffer.from(body) }
    if (body !== undefined && body !== null) return { parsed: body }
    if (bodyOnWire(request.raw)) {
      const { method, url: target } = request
      throw bodyConsumed({ method, target }, "return the body from your content type parser, with parseAs: 'buffer'")
    }
    return noBody()
  }
}
