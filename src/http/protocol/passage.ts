import { SECOND } from '../../ledger/core/limits.ts'
import { createCollector } from './collector.ts'
import type { Captured, HeaderList } from './exchange.ts'
import { isClosing } from './exchange.ts'
import type { Running } from './running.ts'

export interface PassageOptions {
  readonly status: number
  readonly headers: HeaderList
  readonly maxBytes: number
  readonly running: Pick<Running<unknown>, 'context' | 'finish' | 'fail'>
  readonly thrown?: unknown
  /** How long a handler whose client left may pause in the middle of its answer; half a minute, when left out. */
  readonly idleMs?: number | undefined
}

/** A handler that stops writing noticed in another way that its client is gone. */
export const IDLE_MS = 30 * SECOND

/** The end of the body was not seen. */
const UNSEEN = { bytes: null, sha256: null }

/** A streamed answer on its way from the handler to the client. */
export interface Passage {
  /** The next chunk, or null at the end, which comes only when the outcome is recorded. */
  read(): Promise<Uint8Array | null>
  /** The client reads no more. The answer is still read to its end, so that a retry gets all of it. */
  leave(): void
}

/**
 * Reads a handler's stream by itself, ahead of the client, up to the cap: so much is in memory for the record anyway, and
 * a slow client must not keep a command from being settled. Past the cap the client sets the pace.
 */
export function createPassage(source: AsyncIterator<Uint8Array>, options: PassageOptions): Passage {
  const { running, status, headers, idleMs = IDLE_MS } = options
  const collector = createCollector(options.maxBytes)
  const waiting: Uint8Array[] = []
  let over: { readonly error: unknown } | 'ended' | null = null
  let left = false
  /** Its client left, and nothing more came of it. */
  let givenUp = false
  let idle: NodeJS.Timeout | null = null
  let interrupt = () => {}
  let news = Promise.withResolvers<void>()

  function notify(): void {
    news.resolve()
    news = Promise.withResolvers()
  }

  function giveUp(): void {
    givenUp = true
    interrupt()
  }

  /** The next chunk of the handler; null where it was given up before it came, if it ever does. */
  function next(): Promise<IteratorResult<Uint8Array> | null> {
    return new Promise((resolve, reject) => {
      interrupt = () => resolve(null)
      source.next().then(resolve, reject)
    })
  }

  async function pump(): Promise<void> {
    for (;;) {
      while (collector.full && waiting.length > 0 && !left) await news.promise
      // It has no reader and will not be kept, so it is not waited for.
      const given = givenUp || (left && collector.full) ? null : await next()
      if (given === null) {
        await settle(UNSEEN)
        return void source.return?.()?.catch(() => {})
      }
      if (given.done === true) return settle(collector.body())
      idle?.refresh()
      // A copy, because the handler may use its buffer again.
      const chunk = Uint8Array.prototype.slice.call(given.value)
      collector.add(chunk)
      if (!left) waiting.push(chunk)
      notify()
    }
  }

  async function settle(body: Captured['body']): Promise<void> {
    await running.finish({ status, headers, body }, options.thrown)
  }

  void pump()
    .then(
      () => void (over = 'ended'),
      async (error: unknown) => {
        // A source that was closed because its client left did not fail: its status was given before.
        if (left && isClosing(error)) await settle(UNSEEN)
        else await running.fail(error)
        over = { error }
      },
    )
    .then(() => {
      if (idle !== null) clearTimeout(idle)
      notify()
    })

  return {
    async read() {
      for (;;) {
        const chunk = waiting.shift()
        if (chunk !== undefined) {
          notify()
          return chunk
        }
        if (over === 'ended') return null
        if (over !== null) throw over.error
        await news.promise
      }
    },
    leave() {
      if (left) return
      left = true
      waiting.length = 0
      if (over === null) {
        idle = setTimeout(giveUp, idleMs).unref()
        // Past its lease nothing can be recorded, so the handler need not write any more.
        const { signal } = running.context
        if (signal.aborted) giveUp()
        else signal.addEventListener('abort', giveUp, { once: true })
      }
      notify()
    },
  }
}
