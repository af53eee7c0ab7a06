import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Random } from '../../../src/testing/random.ts'

/** A provider that keeps books: under a key it acts once, however often it is asked; without one it acts each time. */
export interface Counter extends AsyncDisposable {
  readonly url: string
  /** How often it acted: under each key, and for each body where no key was given. */
  readonly acts: ReadonlyMap<string, number>
  readonly requests: number
  /** Resolves when it has been asked so often. */
  asked(requests: number): Promise<void>
}

export interface CounterOptions {
  readonly random: Random
  /** It takes up to this long before it acts, and as long again before it answers. */
  readonly mostMs: number
  /** Acts, and never answers. */
  readonly silent?: boolean
}

export async function startCounter({ random, mostMs, silent = false }: CounterOptions): Promise<Counter> {
  const acts = new Map<string, number>()
  const waiting: { readonly requests: number; resolve(): void }[] = []
  let requests = 0

  async function act(key: string | undefined, body: string, response: ServerResponse): Promise<void> {
    await pause(random.below(mostMs))
    const name = key ?? body
    if (key === undefined || !acts.has(key)) acts.set(name, (acts.get(name) ?? 0) + 1)
    requests += 1
    for (const each of waiting.filter((one) => one.requests <= requests)) each.resolve()
    if (silent) return
    await pause(random.below(mostMs))
    response.end(JSON.stringify({ name }))
  }

  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    // The sender may be dead by now: its request is executed all the same.
    request.on(
      'end',
      () =>
        void act(request.headers['idempotency-key'] as string | undefined, Buffer.concat(chunks).toString(), response),
    )
    request.on('error', () => {})
    response.on('error', () => {})
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/`,
    acts,
    get requests() {
      return requests
    },
    asked(wanted) {
      if (requests >= wanted) return Promise.resolve()
      return new Promise((resolve) => void waiting.push({ requests: wanted, resolve }))
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
    },
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms))
}
