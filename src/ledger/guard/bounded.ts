import { isOnceError, OnceError } from '../core/errors.ts'
import { createBreaker, isStoreDown } from './breaker.ts'

/** Bounds calls by the silence of the store, and refuses them at once while the circuit is open. */
export interface Bounded {
  /** `late` gets a result that came after the deadline; `extraMs` is how long the call itself may wait. */
  call<T>(work: () => Promise<T>, late: (value: T) => void, extraMs: number): Promise<T>
  /** Waits for a write no longer than the deadline; it continues in the background. Not stopped by an open circuit. */
  write(work: () => Promise<void>): Promise<void>
}

export function createBounded(deadlineMs: number | null): Bounded {
  const breaker = createBreaker()
  const silence = deadlineMs === null ? null : createSilence(deadlineMs)
  return {
    async call(work, late, extraMs) {
      if (silence === null) return work()
      if (!breaker.allows())
        throw new OnceError('store_unavailable', 'Circuit open: the store is not being called.', { applied: 'no' })
      try {
        const value = await silence.bound(work, extraMs, late)
        breaker.worked()
        return value
      } catch (error) {
        if (isStoreFault(error)) breaker.failed()
        throw error
      }
    },
    write: (work) => (silence === null ? work() : silence.bound(work, 0, () => {})),
  }
}

export function isStoreFault(error: unknown): boolean {
  return isOnceError(error) && isStoreDown(error.code)
}

interface Call {
  /** The step of its beginning. */
  readonly since: number
  readonly steps: number
  giveUp(): void
}

/** A deadline is counted in so many steps; the event loop reads what has arrived between any two of them. */
const STEPS = 10

/**
 * A call fails when the store has answered nothing, to this call or any other, for the deadline. A queue that moves does not
 * count, nor does time in which this process was too busy to read an answer: a step counts as one however late it comes.
 */
function createSilence(deadlineMs: number) {
  const stepMs = deadlineMs / STEPS
  const waiting = new Set<Call>()
  let step = 0
  let heardAt = 0
  let timer: NodeJS.Timeout | null = null

  function next(): void {
    if (timer !== null || waiting.size === 0) return
    timer = setTimeout(() => {
      timer = null
      step++
      for (const call of waiting) if (step - Math.max(call.since, heardAt) >= call.steps) call.giveUp()
      next()
    }, stepMs)
  }

  return {
    async bound<T>(work: () => Promise<T>, extraMs: number, late: (value: T) => void): Promise<T> {
      const silent = Promise.withResolvers<never>()
      let over = false
      const call: Call = {
        since: step,
        steps: Math.ceil((deadlineMs + extraMs) / stepMs),
        giveUp() {
          over = true
          waiting.delete(call)
          const text = `The store was silent for ${deadlineMs + extraMs} ms.`
          silent.reject(new OnceError('store_unavailable', text, { applied: 'maybe' }))
        },
      }
      waiting.add(call)
      next()
      const answer = work()
      answer.then(
        (value) => {
          heardAt = step
          if (over) late(value)
        },
        () => undefined,
      )
      try {
        return await Promise.race([answer, silent.promise])
      } finally {
        waiting.delete(call)
      }
    },
  }
}
