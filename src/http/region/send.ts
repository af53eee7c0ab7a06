import { once } from 'node:events'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { Agent as HttpAgent, request as httpRequest } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { SECOND } from '../../ledger/core/limits.ts'
import { connectWithin, placeOf } from './connecting.ts'
import type { Pulse } from './pulse.ts'
import { createPulse } from './pulse.ts'

/** Names in lower case and values. */
export type RegionHeaders = readonly (readonly [name: string, value: string])[]

export interface RegionRequest {
  readonly method: string
  readonly target: string
  readonly headers: RegionHeaders
  readonly body: Uint8Array
  /** A digest of all that the home must see as it was sent. */
  readonly content: string
  /** The original client, which the home reports to its service in place of the forwarding region. */
  readonly client?: string
  /** How long the home may take to answer; 30 s, when left out. */
  readonly answerMs?: number
}

export interface RegionAnswer {
  readonly status: number
  readonly headers: RegionHeaders
  readonly body: Uint8Array
}

/** A region that cannot be connected to is down; its clients should get an error before their own timeout. */
const CONNECT_MS = 3 * SECOND
/** The home may wait for a twin, and then for its service. A link that is silent meanwhile is given up much sooner. */
const ANSWER_MS = 30 * SECOND
/** As large as a body may be on its way there. */
const MOST_ANSWER_BYTES = 32 * 1_024 * 1_024
const IDLE_MS = 4 * SECOND
/** Answered by a gateway itself; whatever else stands there answers something, too. */
const SIGN_PATH = '/.onceonly/live'

const ofTheConnection = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
  'content-length',
])

/** The connections of one region to another. */
export interface RegionLink {
  /** Rejects when there is no whole answer: whether the request was carried out is known by its key, at home. */
  send(request: RegionRequest): Promise<RegionAnswer>
  stop(): void
}

export function createRegionLink(address: string): RegionLink {
  const url = new URL(address)
  const secure = url.protocol === 'https:'
  const pool = { keepAlive: true, timeout: IDLE_MS }
  const agent = secure ? new HttpsAgent(pool) : new HttpAgent(pool)
  const prefix = url.pathname.replace(/\/$/, '')
  const begin = secure ? httpsRequest : httpRequest
  const place = placeOf(url)
  const pulse = createPulse(async (signal) => {
    const request = begin({ ...place, agent: false, path: prefix + SIGN_PATH, signal })
    request.on('error', () => undefined).end()
    await once(request, 'response')
    request.destroy()
  })

  function open({ method, target, headers, body }: RegionRequest): ClientRequest {
    const kept = headers.filter(([name]) => !ofTheConnection.has(name)).flat()
    const length = body.length > 0 ? ['content-length', String(body.length)] : []
    const headerLines = [...kept, ...length] as never
    return begin({
      ...place,
      agent,
      method,
      path: prefix + target,
      headers: headerLines,
      setHost: false,
    }).setTimeout(0)
  }

  return {
    async send(request) {
      const first = open(request)
      const until = performance.now() + (request.answerMs ?? ANSWER_MS)
      try {
        return await answerTo(first, request.body, until, pulse)
      } catch (error) {
        // The other side closed an idle connection under us. The key makes a second try harmless, where time is left.
        if (
          error instanceof LinkSilent ||
          error instanceof AnswerTooLarge ||
          !first.reusedSocket ||
          performance.now() >= until
        )
          throw error
        return await answerTo(open(request), request.body, until, pulse)
      }
    },
    stop() {
      pulse.stop()
      agent.destroy()
    },
  }
}

/** Neither this request nor a sign of life was answered. */
class LinkSilent extends Error {
  constructor() {
    super('The link to the home is silent.')
    this.name = 'LinkSilent'
  }
}

/** @param until when there must be a whole answer, by the clock of this process */
function answerTo(request: ClientRequest, body: Uint8Array, until: number, pulse: Pulse): Promise<RegionAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<RegionAnswer>()
  const giveUp = (error: Error) => {
    // Also of an answer that came in part: it does not end by itself.
    reject(error)
    request.destroy(error)
  }
  const leftMs = () => Math.max(0, until - performance.now())
  let timer: NodeJS.Timeout | undefined
  connectWithin(request, Math.min(CONNECT_MS, leftMs()), () => {
    timer = setTimeout(giveUp, leftMs(), new Error('The home does not answer.'))
  })
  const unwatch = pulse.watch(() => giveUp(new LinkSilent()))
  // A request closes with the last byte of its response, before that is read: `close` alone means nothing.
  request.once('response', (answer) => void read(answer).then(resolve, reject))
  // An unrequested protocol switch ends the request without an error.
  request.once('upgrade', (_answer, socket) => {
    socket.on('error', () => {}).destroy()
    giveUp(new Error('The home switched protocols.'))
  })
  request.on('error', reject).once('close', () => {
    clearTimeout(timer)
    unwatch()
  })
  request.end(body.length === 0 ? undefined : body)
  return promise
}

/** The home has answered: what was asked for is decided, and only its answer cannot be brought here. */
export class AnswerTooLarge extends Error {
  readonly status: number

  constructor(status: number) {
    super(`The answer is larger than ${MOST_ANSWER_BYTES} bytes.`)
    this.name = 'AnswerTooLarge'
    this.status = status
  }
}

async function read(answer: IncomingMessage): Promise<RegionAnswer> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of answer) {
    bytes += (chunk as Buffer).length
    if (bytes > MOST_ANSWER_BYTES) throw new AnswerTooLarge(answer.statusCode ?? 0)
    chunks.push(chunk as Buffer)
  }
  const headers: [string, string][] = []
  const { rawHeaders } = answer
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] ?? '').toLowerCase()
    if (name === 'content-length' || !ofTheConnection.has(name)) headers.push([name, rawHeaders[at + 1] ?? ''])
  }
  return { status: answer.statusCode ?? 0, headers, body: Buffer.concat(chunks, bytes) }
}
