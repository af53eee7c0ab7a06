import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import { limitConnections } from '../../http/front/connections.ts'
import { frontLimits } from '../../http/front/limits.ts'
import { createShares } from '../../http/front/shares.ts'
import { readBody, sendAnswer } from '../../http/protocol/capture-node.ts'
import { type Answer, jsonAnswer, UnreadableBody } from '../../http/protocol/exchange.ts'
import { listen } from '../../http/protocol/listen.ts'
import { setOwnHeaders } from '../../http/protocol/own-headers.ts'
import { isOnceError } from '../../ledger/core/errors.ts'
import { SECOND } from '../../ledger/core/limits.ts'
import { type Pages, readPages } from '../pages/pages.ts'
import type { Console } from './console.ts'
import type { ConsoleRequest } from './exchange.ts'
import { CONSOLE_API } from './session.ts'

/** The console and its pages on a port of their own, for a process whose other ports belong to another application. */
export interface ConsoleServer {
  listen(port: number, host?: string): Promise<{ readonly port: number; readonly host: string }>
  stop(): Promise<void>
}

export interface ConsoleServerOptions {
  readonly console: Console
  /** Called with errors that the page sees only as a status. */
  readonly onError: (error: unknown) => void
}

/** An action names at most 500 dead letters. */
const BODY_BYTES_MOST = 256 * 1_024
/** Requests of the pages are small and arrive quickly. */
const REQUEST_MS = 15 * SECOND
/** Browsers open six each, for a few dozen people; with the largest bodies they hold 64 MiB. */
const CONNECTIONS_MOST = 256

export function createConsoleServer({ console: answering, onError }: ConsoleServerOptions): ConsoleServer {
  // Read when the first page is asked for.
  let pages: Promise<Pages> | null = null
  const server = createServer({ headersTimeout: REQUEST_MS, requestTimeout: REQUEST_MS }, (message, response) => {
    setOwnHeaders(response)
    handle(message, response).catch((error: unknown) => {
      const failure = failureOf(error)
      if (failure === null) onError(error)
      if (response.headersSent) response.destroy()
      else sendAnswer(response, failure ?? plain(500, 'The console failed'))
    })
  })
  limitConnections(server, createShares({ most: () => CONNECTIONS_MOST, share: frontLimits.placeShare }))

  async function handle(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (message.url ?? '/').replace(/\?.*$/s, '')
    if (path === CONSOLE_API || path.startsWith(`${CONSOLE_API}/`)) {
      const answer = await answering.answer(requestOf(message))
      // A body that is left unread would be taken for the next request.
      message.resume()
      return answer.kind === 'stream' ? answer.attach(response) : sendAnswer(response, answer.answer)
    }
    message.resume()
    if (message.method !== 'GET' && message.method !== 'HEAD')
      return sendAnswer(response, plain(405, 'Method not allowed'))
    if (path === '/') return void response.writeHead(302, { location: '/console' }).end()
    if (path !== '/console' && !path.startsWith('/console/')) return sendAnswer(response, plain(404, 'Not found'))
    pages ??= readPages()
    const { headers } = message
    const found = await (await pages).answer({
      path,
      ifNoneMatch: headers['if-none-match'],
      acceptEncoding: headers['accept-encoding'],
    })
    const body = found.body ?? new Uint8Array()
    sendAnswer(response, { status: found.status, headers: Object.entries(found.headers), body })
  }

  return {
    listen: (port, host) => listen(server, port, host),
    async stop() {
      answering.stop()
      if (!server.listening) return
      const { promise, resolve } = Promise.withResolvers<void>()
      server.close(() => resolve())
      server.closeAllConnections()
      await promise
    },
  }
}

function requestOf(message: IncomingMessage): ConsoleRequest {
  const { method = 'GET', url = '/', headers, httpVersion, socket } = message
  return {
    method,
    url,
    headers,
    httpVersion,
    remoteAddress: socket.remoteAddress,
    clientAddress: socket.remoteAddress ?? '',
    isEncrypted: false,
    async body() {
      const bytes = await readBody(message, BODY_BYTES_MOST)
      if (bytes.length === 0) return undefined
      try {
        return JSON.parse(Buffer.from(bytes).toString()) as unknown
      } catch (cause) {
        throw new UnreadableBody(400, 'The body is not JSON.', { cause })
      }
    },
  }
}

/** Errors of the request or the store; null for everything else. */
function failureOf(error: unknown): Answer | null {
  if (error instanceof UnreadableBody) return plain(error.status, error.message)
  return isOnceError(error, 'store_unavailable') ? plain(503, 'The store cannot be reached') : null
}

function plain(status: number, title: string): Answer {
  return jsonAnswer(status, 'application/problem+json', { title, status })
}
