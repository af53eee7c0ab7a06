import { createCollector } from './collector.ts'
import type { Captured, HeaderList } from './exchange.ts'
import { isClosing } from './exchange.ts'
import type { Running } from './running.ts'

export interface PassageOptions {
  readonly status: number
  readonly headers: HeaderList
  readonly maxBytes: number
  readonly running: Running<unknown>
  readonly thrown?: unknown
}

/** Nobody saw the end of it. */
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
  const { running, status, headers } = options
  const collector = createCollector(options.maxBytes)
  const waiting: Uint8Array[] = []
  let over: { readonly error: unknown } | 'ended' | null = null
  let left = false
  let news = Promise.withResolvers<void>()

  function tell(): void {
    news.resolve()
    news = Promise.withResolvers()
  }

  async function pump(): Promise<void> {
    for (;;) {
      while (collector.full && waiting.length > 0 && !left) await news.promise
      // Nobody reads it and nothing of it will be kept: what it would have become is not worth waiting for.
      if (left && (collector.full || running.protection.attempt.signal.aborted)) {
        await settle(UNSEEN)
        return void source.return?.()?.catch(() => {})
      }
      const { done, value } = await source.next()
      if (done === true) return settle(collector.body())
      // A copy, because the handler may use its buffer again.
      const chunk = Uint8Array.prototype.slice.call(value)
      collector.add(chunk)
      if (!left) waiting.push(chunk)
      tell()
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
    .then(tell)

  return {
    async read() {
      for (;;) {
        const chunk = waiting.shift()
        if (chunk !== undefined) {
          tell()
          return chunk
        }
        if (over === 'ended') return null
        if (over !== null) throw over.error
        await news.promise
      }
    },
    leave() {
      left = true
      waiting.length = 0
      tell()
    },
  }
}
