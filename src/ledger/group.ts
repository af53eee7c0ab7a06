import type { Runtime } from '../runtime/runtime.ts'
import { isOnceError, OnceError } from './core/errors.ts'
import { limits } from './core/limits.ts'

/**
 * Group commit: whatever arrives while a flush is under way is the next flush. Whoever writes at the same time shares
 * one statement and one fsync; a lonely write waits for nobody.
 */
export interface Group<I, A> {
  write(item: I): Promise<A>
}

interface Waiting<I, A> {
  readonly item: I
  resolve(answer: A): void
  reject(error: unknown): void
}

export interface GroupOptions<I, A> {
  /** Flushes under way at once. */
  readonly lanes: number
  flush(items: readonly I[]): Promise<readonly A[]>
  /** In characters, roughly. */
  sizeOf(item: I): number
}

export function createGroup<I, A>(runtime: Runtime, { lanes, flush, sizeOf }: GroupOptions<I, A>): Group<I, A> {
  const queue: Waiting<I, A>[] = []
  let flying = 0

  /** As many as one statement shall carry, and always one. */
  function nextBatch(): Waiting<I, A>[] {
    let bytes = 0
    const end = queue.findIndex(({ item }, index) => {
      bytes += sizeOf(item)
      return index >= limits.batchRows || (index > 0 && bytes > limits.batchBytes)
    })
    return queue.splice(0, end < 0 ? queue.length : end)
  }

  async function fly(batch: readonly Waiting<I, A>[]): Promise<void> {
    try {
      const answers = await flush(batch.map(({ item }) => item))
      batch.forEach((waiting, index) => waiting.resolve(answers[index] as A))
    } catch (error) {
      // A store that is away is away for all of them; otherwise one of them is to blame, and fails alone.
      if (batch.length === 1 || (isOnceError(error) && error.retryable)) {
        for (const waiting of batch) waiting.reject(error)
        return
      }
      const middle = batch.length >> 1
      await fly(batch.slice(0, middle))
      await fly(batch.slice(middle))
    }
  }

  async function drain(): Promise<void> {
    while (queue.length > 0) await fly(nextBatch())
    flying -= 1
  }

  return {
    write(item) {
      if (queue.length >= limits.batchQueueRows) {
        const text = `More than ${limits.batchQueueRows} writes wait for the store.`
        return Promise.reject(new OnceError('store_busy', text))
      }
      const { promise, resolve, reject } = Promise.withResolvers<A>()
      queue.push({ item, resolve, reject })
      // One that has not left yet takes this along; another lane is for what comes while it is under way.
      if (flying < lanes && queue.length === 1) {
        flying += 1
        runtime.soon(() => void drain())
      }
      return promise
    },
  }
}
