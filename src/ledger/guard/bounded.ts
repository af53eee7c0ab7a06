import { isOnceError, OnceError } from '../core/errors.ts'
import { createBreaker } from './breaker.ts'

/** Bounds calls in time, and refuses them at once while they are known to fail. */
export interface Bounded {
  /** `late` gets an answer that came after the deadline; `extraMs` is time that the call is meant to wait. */
  call<T>(work: () => Promise<T>, late: (value: T) => void, extraMs: number): Promise<T>
  /** Waits for a write no longer than that. It is tried whatever became of others, and goes on behind when it is late. */
  write(work: () => Promise<void>): Promise<void>
}

export function createBounded(deadlineMs: number | null): Bounded {
  const breaker = createBreaker()
  return {
    async call(work, late, extraMs) {
      if (deadlineMs === null) return work()
      if (!breaker.allows()) throw new OnceError('store_unavailable', 'The breaker is open.', { applied: 'no' })
      try {
        const value = await inTime(work, deadlineMs + extraMs, late)
        breaker.worked()
        return value
      } catch (error) {
        if (isStoreFault(error)) breaker.failed()
        throw error
      }
    },
    write: (work) => (deadlineMs === null ? work() : inTime(work, deadlineMs, () => {})),
  }
}

/** The store is away, or too busy to answer. Any other error says something about the call itself. */
export function isStoreFault(error: unknown): boolean {
  return isOnceError(error, 'store_unavailable') || isOnceError(error, 'store_busy')
}

async function inTime<T>(work: () => Promise<T>, ms: number, late: (value: T) => void): Promise<T> {
  let over = false
  const answer = work()
  const timeout = Promise.withResolvers<never>()
  const timer = setTimeout(() => {
    over = true
    timeout.reject(new OnceError('store_unavailable', `No answer within ${ms} ms.`, { applied: 'maybe' }))
  }, ms)
  answer.then(
    (value) => (over ? late(value) : undefined),
    () => undefined,
  )
  try {
    return await Promise.race([answer, timeout.promise])
  } finally {
    clearTimeout(timer)
  }
}
