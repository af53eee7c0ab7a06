import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

export interface Arrival {
  readonly key: string
  readonly leadId: string
  readonly atMs: number
}

/** What becomes of a request: answered, refused for now, carried out without an answer, or never answered. */
export type Mood = 'answer' | 'refuse' | 'lose' | 'hang'

export interface KeyedProvider extends AsyncDisposable {
  readonly url: string
  /** Every request, also those that were refused. */
  readonly arrivals: readonly Arrival[]
  /** By their keys: how often each had its effect, which a provider that honours keys does once. */
  readonly effects: ReadonlyMap<string, { readonly leadId: string }>
}

/** A provider that honours keys, and is not always in the mood. */
export async function startKeyedProvider(
  moodOf: (arrival: Arrival) => Mood | Promise<Mood> = () => 'answer',
): Promise<KeyedProvider> {
  const arrivals: Arrival[] = []
  const effects = new Map<string, { leadId: string }>()

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<unknown> {
    // When it came is when it counts for the rate, however long its body takes.
    const atMs = performance.now()
    const key = String(request.headers['idempotency-key'])
    const { leadId } = JSON.parse(await text(request)) as { readonly leadId: string }
    const arrival = { key, leadId, atMs }
    arrivals.push(arrival)
    const mood = await moodOf(arrival)
    if (mood === 'refuse') return response.writeHead(429, { 'retry-after': '1' }).end()
    effects.set(key, { leadId })
    if (mood === 'lose') return request.socket.destroy()
    if (mood === 'hang') return undefined
    return response.writeHead(201, { 'content-type': 'application/json' }).end('{"id":"done"}')
  }

  const server = createServer(
    (request, response) => void serve(request, response).catch(() => request.socket.destroy()),
  )
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    arrivals,
    effects,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
