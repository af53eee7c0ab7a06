import type { IncomingMessage, ServerResponse } from 'node:http'
import { BodyTooLarge, hangUpSignal, incomingOf, readBody, sendAnswer, tapResponse } from '../capture-node.ts'
import { jsonAnswer } from '../exchange.ts'
import type { HttpOptions, Protection } from '../protect.ts'
import { createRoute } from '../protect.ts'
import type { RouteDefinition } from '../route.ts'

/** A request whose raw bytes were read before its handler ran. */
export type ReadMessage = IncomingMessage & { rawBody: Uint8Array }

export type NodeHandler<Tx> = (
  request: ReadMessage,
  response: ServerResponse,
  /** Null where the request carries no key and needs none. */
  protection: Protection<Tx> | null,
) => unknown

export interface NodeOptions<Tx> extends HttpOptions<ReadMessage, Tx> {
  readonly maxBodyBytes?: number
}

const MAX_BODY_BYTES = 1_024 * 1_024

/** Protects handlers of Node's own `http` server: `createServer(protect({ effect: 'external' }, handler))`. */
export function idempotent<Tx>(options: NodeOptions<Tx>) {
  const maxBodyBytes = options.maxBodyBytes ?? MAX_BODY_BYTES
  return (definition: RouteDefinition<ReadMessage>, handler: NodeHandler<Tx>) => {
    const route = createRoute(options, definition)
    return async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      const read = await rawBodyOf(request, response, maxBodyBytes)
      if (read === null) return
      const begun = await route.begin(incomingOf(request, read.rawBody), read, hangUpSignal(response))
      switch (begun.kind) {
        case 'unprotected':
          await handler(read, response, null)
          return
        case 'answer':
          sendAnswer(response, begun.answer)
          return
        case 'run':
          tapResponse(response, { maxBytes: route.maxAnswerBytes, buffered: route.buffered, finish: begun.finish })
          try {
            await handler(read, response, begun.protection)
          } catch (error) {
            await begun.fail(error)
            throw error
          }
      }
    }
  }
}

async function rawBodyOf(
  request: IncomingMessage,
  response: ServerResponse,
  maxBytes: number,
): Promise<ReadMessage | null> {
  try {
    return Object.assign(request, { rawBody: await readBody(request, maxBytes) })
  } catch (error) {
    if (!(error instanceof BodyTooLarge)) throw error
    sendAnswer(
      response,
      jsonAnswer(error.status, 'application/problem+json', { title: error.message, status: error.status }),
    )
    return null
  }
}
