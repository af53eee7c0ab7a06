import { OnceError } from '../core/errors.ts'
import { limits } from '../core/limits.ts'
import type { Runtime } from '../ledger/runtime.ts'

/**
 * Group commit: whatever arrives while a flush is under way is the next flush. Runs that step at the same time share
 * one statement and one fsync; a lonely run waits for nobody.
 */
export interface Group<I, A> {
  write(item: I): Promise<A>
}

interface Waiting<I, A> {
  readonly item: I
  resolve(answer: A): void
  reject(error: unknown): void
}

export function createGroup<I, A>(
  runtime: Runtime,
  flush: (items: readonly I[]) => Promise<readonly A[]>,
): Group<I, A> {
  const queue: Waiting<I, A>[] = []
  let flying = false

  async function fly(): Promise<void> {
    const batch = queue.splice(0, limits.batchRows)
    try {
      const answers = await flush(batch.map(({ item }) => item))
      batch.forEach((waiting, index) => waiting.resolve(answers[index] as A))
    } catch (error) {
      for (const waiting of batch) waiting.reject(error)
    }
  }

  async function drain(): Promise<void> {
    while (queue.length > 0) await fly()
    flying = false
  }

  return {
    write(item) {
      if (queue.length >= limits.batchQueueRows) {
        const text = `More than ${limits.batchQueueRows} writes wait for the store.`
        return Promise.reject(new OnceError('store_busy', text))
      }
      const { promise, resolve, reject } = Promise.withResolvers<A>()
      queue.push({ item, resolve, reject })
      if (!flying) {
        flying = true
        runtime.soon(() => void drain())
      }
      return promise
    },
  }
}
