import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../src/testing/random.ts'

/** How the provider treats a call: what it does, and what the caller gets. */
const fates = {
  answered: 70,
  done_answer_lost: 6,
  done_answer_late: 4,
  done_never_answered: 1,
  done_500: 3,
  nothing_done_429: 5,
  nothing_done_503: 4,
  nothing_done_500: 3,
  nothing_done_cut: 3,
  refused_422: 2,
} as const
export type Fate = keyof typeof fates

/** The caller cannot know from these whether anything was done. */
const ambiguous: ReadonlySet<Fate> = new Set([
  'done_answer_lost',
  'done_answer_late',
  'done_never_answered',
  'done_500',
  'nothing_done_500',
  'nothing_done_cut',
])

/** What the provider really did for one text. */
export interface Deeds {
  done: number
  calls: number
  /** Calls after one whose outcome the caller cannot know. */
  blind: number
  /** The provider refused it for good. */
  refused: boolean
  doubtful: boolean
  readonly keys: Set<string>
}

/** One provider with three doors: `/hook` and `/step` honour Idempotency-Key, `/sms` knows none. */
export interface StormProvider extends AsyncDisposable {
  readonly url: string
  readonly fates: Readonly<Record<Fate, number>>
  deedsOf(door: Door, text: string): Deeds
  /** From now on every call is answered at once. */
  calm(): void
}

export type Door = 'hook' | 'step' | 'sms'

/** Later than a sender waits, earlier than it stops listening. */
const LATE_MS = { least: 2_500, most: 6_000 }
const ANSWER_MS_MOST = 60

export async function startStormProvider(random: Random): Promise<StormProvider> {
  const deeds = new Map<string, Deeds>()
  const done = new Map<string, string>()
  const counts = Object.fromEntries(Object.keys(fates).map((fate) => [fate, 0])) as Record<Fate, number>
  let stormy = true

  function deedsOf(door: Door, message: string): Deeds {
    const name = `${door} ${message}`
    const known = deeds.get(name) ?? { done: 0, calls: 0, blind: 0, refused: false, doubtful: false, keys: new Set() }
    deeds.set(name, known)
    return known
  }

  function fateOf(mayRefuse: boolean): Fate {
    if (!stormy) return 'answered'
    const weighted = Object.entries(fates) as [Fate, number][]
    let at = random.next() * weighted.reduce((sum, [, weight]) => sum + weight, 0)
    const [fate] = weighted.find(([, weight]) => (at -= weight) < 0) ?? ['answered']
    return fate === 'refused_422' && !mayRefuse ? 'answered' : fate
  }

  /** A provider that honours keys performs a key once, and always answers it the same. */
  function act(door: Door, key: string | null, known: Deeds): string {
    const earlier = key === null ? undefined : done.get(`${door} ${key}`)
    if (earlier !== undefined) return earlier
    known.done += 1
    const id = `${door}-${random.id()}`
    if (key !== null) done.set(`${door} ${key}`, id)
    return id
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<unknown> {
    const door = (request.url ?? '').slice(1).split('?')[0] as Door
    const body = await text(request)
    const message =
      door === 'sms' ? (new URLSearchParams(body).get('Body') ?? '') : String(JSON.parse(body).message ?? '')
    const key = door === 'sms' ? null : String(request.headers['idempotency-key'])
    const known = deedsOf(door, message)
    const fate = fateOf(key === null || !done.has(`${door} ${key}`))
    counts[fate] += 1
    known.calls += 1
    if (known.doubtful) known.blind += 1
    if (key !== null) known.keys.add(key)
    if (ambiguous.has(fate)) known.doubtful = true
    if (fate === 'refused_422') known.refused = true
    if (stormy) await sleep(random.below(ANSWER_MS_MOST))
    const id = fate === 'answered' || fate.startsWith('done_') ? act(door, key, known) : ''
    return answer(fate, id, request, response)
  }

  async function answer(fate: Fate, id: string, request: IncomingMessage, response: ServerResponse): Promise<unknown> {
    switch (fate) {
      case 'done_answer_late':
        await sleep(LATE_MS.least + random.below(LATE_MS.most - LATE_MS.least))
        return response.writeHead(201, { 'content-type': 'application/json' }).end(JSON.stringify({ id, sid: id }))
      case 'answered':
        return response.writeHead(201, { 'content-type': 'application/json' }).end(JSON.stringify({ id, sid: id }))
      case 'done_never_answered':
        return undefined
      case 'done_answer_lost':
      case 'nothing_done_cut':
        return request.socket.destroy()
      case 'done_500':
      case 'nothing_done_500':
        return response.writeHead(500).end('oops')
      case 'nothing_done_429':
        return response.writeHead(429, random.chance(0.5) ? { 'retry-after': '1' } : {}).end()
      case 'nothing_done_503':
        return response.writeHead(503, { 'retry-after': '1' }).end()
      case 'refused_422':
        return response.writeHead(422).end('{"error":"no such person"}')
    }
  }

  const server = createServer((request, response) => {
    serve(request, response).catch(() => request.socket.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    fates: counts,
    deedsOf,
    calm: () => void (stormy = false),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
