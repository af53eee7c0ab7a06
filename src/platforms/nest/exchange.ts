import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { ReadRequest } from '../../http/adapters/express-body.ts'
import { bodyOf as expressBody } from '../../http/adapters/express-body.ts'
import { FastifyIncoming } from '../../http/adapters/fastify-body.ts'
import { NodeIncoming, sendAnswer } from '../../http/protocol/capture-node.ts'
import type { Answer, IncomingBody } from '../../http/protocol/exchange.ts'
import { headerOf } from '../../http/protocol/exchange.ts'
import type { Awaitable } from '../../http/protocol/thenable.ts'
import { OnceError } from '../../ledger/core/errors.ts'

/** Fastify's reply, by what is used of it; Express has Node's own response in its place. */
interface Reply {
  readonly raw: ServerResponse
  hijack(): unknown
  send(payload?: unknown): unknown
  redirect(...args: unknown[]): unknown
  getHeaders(): OutgoingHttpHeaders
}

/** One request with its response, on either platform. */
export interface NestExchange {
  /** The platform's own request, as guards and `who` see it. */
  readonly request: object
  readonly incoming: NodeIncoming | FastifyIncoming
  /** Node's response, under that of the platform. */
  readonly response: ServerResponse
  /** Sends a response of the protocol in place of whatever Nest makes of the method's result. */
  answer(answer: Answer): void
}

/** @param what the method, for messages */
export function exchangeOf(request: unknown, response: unknown, maxBodyBytes: number, what: string): NestExchange {
  if (isReply(response)) return onFastify(request as FastifyRequest, response)
  if (isNodeResponse(response)) return onNode(request as ReadRequest, response, maxBodyBytes)
  throw new OnceError('bad_option', `${what}: @Idempotent works on HTTP routes of Express and Fastify only.`)
}

function isReply(response: unknown): response is Reply {
  const { raw, hijack } = (response ?? {}) as Partial<Reply>
  return isNodeResponse(raw) && typeof hijack === 'function'
}

function isNodeResponse(response: unknown): response is ServerResponse {
  const { setHeader, end } = (response ?? {}) as Partial<ServerResponse>
  return typeof setHeader === 'function' && typeof end === 'function'
}

const RAW_BODY = 'let a parser of Nest read it, or create the application with { rawBody: true }'

/** Express, and Node's own server. */
function onNode(request: ReadRequest, response: ServerResponse, maxBodyBytes: number): NestExchange {
  const body = () => withFiles(request, expressBody(request, maxBodyBytes, RAW_BODY))
  return {
    request,
    incoming: new NodeIncoming(request, response, request.originalUrl ?? request.url ?? '/', body),
    response,
    answer(answer) {
      sendAnswer(response, answer)
      mute(response)
    },
  }
}

interface FastifyRequest {
  readonly raw: IncomingMessage
  readonly rawBody?: Uint8Array
  readonly body?: unknown
  readonly method: string
  readonly url: string
}

function onFastify(request: FastifyRequest, reply: Reply): NestExchange {
  const { raw } = reply
  const { rawBody } = request
  const target = request.raw.url ?? '/'
  // Fastify keeps headers to itself until it sends them; those from before the handler belong to every response.
  for (const [name, value] of Object.entries(reply.getHeaders())) if (value !== undefined) raw.setHeader(name, value)
  return {
    request,
    incoming:
      rawBody === undefined
        ? new FastifyIncoming(request.raw, raw, target, request as never)
        : new NodeIncoming(request.raw, raw, target, () => ({ bytes: rawBody })),
    response: raw,
    answer(answer) {
      reply.hijack()
      sendAnswer(raw, answer)
      reply.send = () => reply
      reply.redirect = () => reply
    },
  }
}

/** What Nest and the application's interceptors still write belongs to a response that is not sent. */
function mute(response: ServerResponse): void {
  const writeHead = response.writeHead.bind(response)
  Object.assign(response, {
    setHeader: () => response,
    appendHeader: () => response,
    setHeaders: () => response,
    removeHeader: () => {},
    // Compression may write the head of our own response later.
    writeHead: (status: number) => (response.headersSent ? response : writeHead(status)),
    write: () => true,
    end: () => response,
  })
}

/** A file of Multer, which Nest's file interceptors read before the method runs. */
interface UploadedFile {
  readonly fieldname: string
  readonly originalname: string
  readonly mimetype: string
  readonly size: number
  readonly buffer?: Uint8Array
}

interface Uploads {
  readonly file?: UploadedFile
  readonly files?: readonly UploadedFile[] | Readonly<Record<string, readonly UploadedFile[]>>
}

/** Other files make another request, although the fields of the form are the same. */
function withFiles(request: ReadRequest & Uploads, read: Awaitable<IncomingBody>): Awaitable<IncomingBody> {
  return read instanceof Promise ? read.then((body) => andFiles(request, body)) : andFiles(request, read)
}

function andFiles(request: ReadRequest & Uploads, body: IncomingBody): IncomingBody {
  const { file, files = [] } = request
  const all = [...(file === undefined ? [] : [file]), ...(Array.isArray(files) ? files : Object.values(files).flat())]
  if (!('parsed' in body) || all.length === 0) return body
  const described = (all as readonly UploadedFile[]).map(({ fieldname, originalname, mimetype, size, buffer }) => {
    const content = buffer === undefined ? null : Buffer.from(buffer).toString('base64')
    return { fieldname, originalname, mimetype, size, content }
  })
  return { parsed: { fields: body.parsed, files: described } }
}

/** What interceptors of the application see of a response that does not come from the method. */
export function valueIn({ headers, body }: Answer): unknown {
  if (!/^[^;]*[/+]json\s*(;|$)/i.test(headerOf(headers, 'content-type') ?? '')) return undefined
  try {
    return JSON.parse(Buffer.from(body).toString()) as unknown
  } catch {
    return undefined
  }
}
