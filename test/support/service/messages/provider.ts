import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

interface Call {
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

export interface Provider extends AsyncDisposable {
  readonly url: string
  readonly calls: readonly Call[]
}

/** An HTTP provider whose response depends on the text of the message. */
export async function startProvider(): Promise<Provider> {
  const calls: Call[] = []
  async function serve(request: IncomingMessage, response: ServerResponse): Promise<unknown> {
    const body = await text(request)
    calls.push({ headers: request.headers, body })
    const sent = decodeURIComponent(body.replaceAll('+', ' '))
    const seen = calls.filter((call) => call.body === body).length
    if (sent.includes('go away')) return response.writeHead(422).end('{"error":"no such number"}')
    if (sent.includes('break down')) return response.writeHead(500).end('oops')
    if (sent.includes('hang up') && !(sent.includes('once') && seen > 1)) return request.socket.destroy()
    if (sent.includes('say nothing') && seen === 1) return undefined
    if (sent.includes('patience') && seen < 5) return response.writeHead(429).end()
    if (sent.includes('busy') && seen < 3) return response.writeHead(429).end()
    if (sent.includes('without an id')) return response.writeHead(204).end()
    return response.writeHead(201, { 'content-type': 'application/json' }).end('{"id":"hook-1","sid":"SM1"}')
  }
  const server = createServer((request, response) => void serve(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    calls,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
