import { request as ask } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../src/testing/random.ts'
import type { Front } from './network.ts'

export interface Answer {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
  readonly text: string
}

export interface Request {
  readonly method: string
  readonly path: string
  readonly bearer?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
}

/** Typical clients: they repeat a request, at any server, until they get a final answer. */
export interface Clients {
  readonly counts: { requests: number; unanswered: number; putOff: number; unknown: number }
  insist(request: Request, isEnd: (answer: Answer) => boolean): Promise<Answer>
}

/** Less than a lease, so that clients come again while the first attempt still runs. */
const REQUEST_MS = 10_000
const AGAIN_MS = { least: 50, most: 400 }
/**
 * Longer than the storm's longest pause, a lease and its takeover together: a client without a final answer by then
 * never gets one.
 */
const INSIST_MS = 900_000

export function createClients(fronts: readonly Front[], random: Random): Clients {
  const counts = { requests: 0, unanswered: 0, putOff: 0, unknown: 0 }

  async function once(request: Request): Promise<Answer | null> {
    counts.requests += 1
    try {
      return await send(random.pick(fronts).url, request)
    } catch {
      counts.unanswered += 1
      return null
    }
  }

  return {
    counts,
    async insist(request, isEnd) {
      const giveUpMs = performance.now() + INSIST_MS
      for (;;) {
        const answer = await once(request)
        if (answer !== null && isEnd(answer)) return answer
        const words = answer === null ? 'no answer' : `${answer.status} ${answer.text}`
        if (answer !== null && !mayRepeat(answer))
          throw new Error(`${request.method} ${request.path} was refused: ${words}`)
        if (performance.now() > giveUpMs)
          throw new Error(
            `${request.method} ${request.path} got no final answer within ${INSIST_MS / 1_000} s: ${words}`,
          )
        if (answer !== null) counts[isUnknown(answer) ? 'unknown' : 'putOff'] += 1
        await sleep(AGAIN_MS.least + random.below(AGAIN_MS.most - AGAIN_MS.least))
      }
    },
  }
}

/** Not yet, a server error, or an outcome that a probe will determine; anything else is final. */
function mayRepeat(answer: Answer): boolean {
  const { status, body } = answer
  return status < 300 || status >= 500 || status === 429 || body['retryable'] === true || isUnknown(answer)
}

function isUnknown({ status, body }: Answer): boolean {
  return status === 409 && String(body['type']).endsWith('/outcome-unknown')
}

async function send(url: string, { method, path, bearer, headers = {}, body }: Request): Promise<Answer> {
  const bytes = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body)
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const request = ask(url + path, {
    method,
    // A connection of its own: its fate is the fate of one request.
    agent: false,
    signal: AbortSignal.timeout(REQUEST_MS),
    headers: {
      ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
      ...(bytes === undefined
        ? {}
        : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(bytes) }),
      ...headers,
    },
  })
  request.on('error', reject)
  request.on('response', (response) => {
    text(response)
      .then((whole) => {
        const parsed: unknown = whole === '' ? {} : JSON.parse(whole)
        resolve({ status: response.statusCode ?? 0, body: parsed as Answer['body'], text: whole })
      })
      .catch(reject)
  })
  request.end(bytes)
  return promise
}
