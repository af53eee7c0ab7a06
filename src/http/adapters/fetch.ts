import { captureResponse, incomingOf, responseOf } from '../capture-web.ts'
import { jsonAnswer } from '../exchange.ts'
import type { HttpOptions, Protection } from '../protect.ts'
import { createRoute } from '../protect.ts'
import type { RouteDefinition } from '../route.ts'

export type FetchHandler<Tx> = (
  request: Request,
  /** Null where the request carries no key and needs none. */
  protection: Protection<Tx> | null,
) => Response | Promise<Response>

export interface FetchOptions<Tx> extends HttpOptions<Request, Tx> {
  readonly maxBodyBytes?: number
}

const MAX_BODY_BYTES = 1_024 * 1_024

/** Protects anything of the shape `(Request) => Response`. */
export function idempotent<Tx>(options: FetchOptions<Tx>) {
  const maxBodyBytes = options.maxBodyBytes ?? MAX_BODY_BYTES
  return (definition: RouteDefinition<Request>, handler: FetchHandler<Tx>) => {
    const route = createRoute(options, definition)
    return async (request: Request): Promise<Response> => {
      const body = await readBounded(request, maxBodyBytes)
      if (body === null)
        return responseOf(jsonAnswer(413, 'application/problem+json', { title: 'The body is too large.', status: 413 }))
      // The body was read for the fingerprint; the handler gets a request that can be read again.
      const again = rebuilt(request, body)
      const begun = await route.begin(incomingOf(request, body), again, request.signal)
      switch (begun.kind) {
        case 'unprotected':
          return handler(again, null)
        case 'answer':
          return responseOf(begun.answer)
        case 'run':
          try {
            const response = await handler(again, begun.protection)
            return await captureResponse(response, {
              maxBytes: route.maxAnswerBytes,
              buffered: route.buffered,
              running: begun,
            })
          } catch (error) {
            await begun.fail(error)
            throw error
          }
      }
    }
  }
}

function rebuilt(request: Request, body: Uint8Array): Request {
  if (request.body === null) return request
  const { method, headers, signal } = request
  return new Request(request.url, { method, headers, signal, body: body as Uint8Array<ArrayBuffer> })
}

async function readBounded(request: Request, maxBytes: number): Promise<Uint8Array | null> {
  if (request.body === null) return new Uint8Array()
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of request.body) {
    bytes += chunk.length
    if (bytes > maxBytes) return null
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, bytes)
}
