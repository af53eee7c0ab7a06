import { OnceError } from '../../ledger/core/errors.ts'
import { clientDefaults } from '../../ledger/core/limits.ts'
import { checkOptions } from '../../ledger/core/option-names.ts'
import { backoffMs } from '../../ledger/core/retry.ts'
import { ClientError } from './errors.ts'
import type { KeyStorage } from './key.ts'
import { newKey } from './key.ts'
import { repeatable } from './repeatable.ts'
import { retryOf } from './verdict.ts'

/**
 * A `fetch` that may be tried again: every request that changes something carries a key, the same with every attempt.
 */
export interface Client {
  /**
   * Sends until there is an answer that a repetition would not change. The last answer is returned, whatever its status;
   * `no_answer` is thrown when there was none.
   */
  send(url: string | URL, options?: ClientSendOptions): Promise<SentRequest>
  /** The intent is done with, and noted by you: its key may be forgotten. */
  drop(intent: string): Promise<void>
  /** Ends what is under way. */
  stop(): void
}

export interface ClientSendOptions extends RequestInit {
  /**
   * Names the one effect that this request shall have: `order-17/capture`. The same intent has the same key, after a restart,
   * too; the client needs `keys` for it.
   * @default none
   */
  readonly intent?: string
  /** A key of your own; an `Idempotency-Key` among the headers does the same. @default a new UUID */
  readonly key?: string
}

export interface SentRequest {
  /** Read to its end already, so that what it says is what the server recorded. */
  readonly response: Response
  /** Null for requests that change nothing. */
  readonly key: string | null
  readonly attempts: number
  /** The answer is that of an earlier attempt, which had its effect. */
  readonly replayed: boolean
}

export interface ClientOptions {
  /**
   * Where keys outlive this process, by their intent: `openFileKeys` of `onceonly/client-file`, or your own.
   * @default none: `intent` is refused
   */
  readonly keys?: KeyStorage
  /** Another name of the header. @default 'Idempotency-Key' */
  readonly header?: string
  /** How often one request is sent at the most. @default 8 */
  readonly attempts?: number
  /** How long one attempt may take. @default 30_000 */
  readonly attemptMs?: number
  /** How long all attempts and the pauses between them may take. @default 120_000 */
  readonly withinMs?: number
  /** Another `fetch`, with a proxy or a pool of its own. @default the global one */
  readonly fetch?: typeof fetch
  /** Called with every attempt and its end. @default none */
  readonly on?: (event: ClientEvent) => void
}

export interface ClientEvent {
  readonly kind: 'retry'
  readonly key: string | null
  /** The failed attempt, from 1. */
  readonly attempt: number
  /** The status of its answer; null when there was none. */
  readonly status: number | null
  /** Why there was none. */
  readonly error?: unknown
  readonly waitMs: number
}

const clientOptions = {
  keys: true,
  header: true,
  attempts: true,
  attemptMs: true,
  withinMs: true,
  fetch: true,
  on: true,
} satisfies Record<keyof ClientOptions, true>

/** They change nothing, and may be repeated without a key. */
const READING = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE'])
const BACKOFF = { baseMs: clientDefaults.backoffBaseMs, capMs: clientDefaults.backoffCapMs }

/**
 * Makes a client that sends requests with a key, and repeats them for as long as that is safe.
 *
 * @example
 * ```ts
 * import { createClient } from 'onceonly/client'
 *
 * const client = createClient()
 * const { response, replayed } = await client.send('https://api.example.com/orders', { method: 'POST', body: 'tea' })
 * console.log(response.status, replayed)
 * ```
 */
export function createClient(options: ClientOptions = {}): Client {
  checkOptions('createClient', options, clientOptions)
  const { keys, header = 'Idempotency-Key', on = () => undefined } = options
  const { attempts = clientDefaults.attempts, withinMs = clientDefaults.withinMs } = options
  const { attemptMs = clientDefaults.attemptMs } = options
  const stopping = new AbortController()

  async function keyFor(method: string, headers: Headers, { intent, key }: ClientSendOptions): Promise<string | null> {
    const own = key ?? headers.get(header)
    if (own !== null) return own
    if (READING.has(method)) return null
    if (intent === undefined) return newKey()
    if (keys === undefined) throw needsKeys()
    // Kept before anything is sent: a key that is lost with its request could not be repeated.
    return keys.keep(intent, newKey())
  }

  async function attempt(url: string | URL, init: RequestInit, signal: AbortSignal): Promise<Response | Lost> {
    // Looked up here, because programs replace the global one.
    const send = options.fetch ?? fetch
    try {
      const response = await send(url, { ...init, signal: AbortSignal.any([signal, AbortSignal.timeout(attemptMs)]) })
      return await whole(response)
    } catch (error) {
      // An aborted caller gets its abort; every other error is a lost connection, at whichever byte.
      signal.throwIfAborted()
      if (options.fetch === undefined) refuseNoRequest(url, init)
      return { lost: error }
    }
  }

  async function send(url: string | URL, asked: ClientSendOptions = {}): Promise<SentRequest> {
    const { intent: _intent, key: _key, signal: given, ...init } = asked
    const method = (init.method ?? 'GET').toUpperCase()
    const headers = new Headers(init.headers)
    const key = await keyFor(method, headers, asked)
    if (key !== null) headers.set(header, key)
    const signal = AbortSignal.any(given ? [given, stopping.signal] : [stopping.signal])
    const mayRepeat = repeatable(init.body) && (key !== null || READING.has(method))
    const most = mayRepeat ? attempts : 1
    const until = performance.now() + withinMs
    for (let count = 1; ; count++) {
      const result = await attempt(url, { ...init, method, headers }, signal)
      const verdict = 'lost' in result ? ({ again: true, afterMs: null } as const) : await retryOf(result)
      // Never sooner than the server asked for, and ever more slowly even if it asked for nothing.
      const waitMs = Math.max(backoffMs(count, BACKOFF, Math.random()), (verdict.again && verdict.afterMs) || 0)
      if (!verdict.again || count >= most || performance.now() + waitMs > until) {
        if ('lost' in result) throw noAnswer(key, count, result.lost)
        const replayed = result.headers.get('idempotent-replayed') === 'true'
        return { response: result, key, attempts: count, replayed }
      }
      const why = 'lost' in result ? { status: null, error: result.lost } : { status: result.status }
      on({ kind: 'retry', key, attempt: count, ...why, waitMs })
      await pause(waitMs, signal)
    }
  }

  return {
    send,
    drop: async (intent) => keys?.drop(intent),
    stop: () => stopping.abort(new OnceError('stopped', 'The client was stopped.', { next: 'Create a new client.' })),
  }
}

/** There was no answer, and this is why. */
interface Lost {
  readonly lost: unknown
}

/** Throws what is wrong with a request that never was one, such as its URL: no repetition would change it. */
function refuseNoRequest(url: string | URL, { body: _body, signal: _signal, ...init }: RequestInit): void {
  void new Request(url, init)
}

/** An answer that breaks off in the middle is no answer. What was read can be read again. */
async function whole(response: Response): Promise<Response> {
  const { status, statusText, headers } = response
  const bytes = await response.arrayBuffer()
  const body = status === 204 || status === 205 || status === 304 ? null : bytes
  return new Response(body, { status, statusText, headers })
}

function noAnswer(key: string | null, attempts: number, cause: unknown): OnceError {
  const message = `No answer came in ${attempts} ${attempts === 1 ? 'attempt' : 'attempts'}.`
  return new ClientError('no_answer', message, { cause, details: { key, attempts } })
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      if (signal.aborted) reject(signal.reason as Error)
      else resolve()
    }
    const timer = setTimeout(end, ms)
    signal.addEventListener('abort', end)
    if (signal.aborted) end()
  })
}

function needsKeys(): OnceError {
  const text = 'An `intent` needs the option `keys` of createClient: openFileKeys({ folder }) of onceonly/client-file.'
  return new OnceError('bad_option', text, { details: { option: 'keys' } })
}
