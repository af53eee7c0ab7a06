import { OnceError } from '../../core/errors.ts'
import { limits } from '../../core/limits.ts'
import type { Time } from './clock.ts'

/** One writer at a time, as in SQLite: a caller that comes while a transaction is open waits for its turn. */
export interface Writer {
  /** Runs the work alone. Short work (claims, settles) goes before the transactions that wait. */
  run<T>(turn: Turn, work: () => T | Promise<T>): Promise<T>
  /** Work that never waits may be done at once, without a turn. */
  isFree(): boolean
  /** Settles when there is no writer and no waiter. */
  idle(): Promise<void>
}

export interface Turn {
  readonly short: boolean
  readonly waitMs: number
  /** The error of a caller whose turn did not come in time. Nothing was written then. */
  readonly late: () => OnceError
}

export function createWriter(time: Time): Writer {
  const short: (() => void)[] = []
  const long: (() => void)[] = []
  const idlers: (() => void)[] = []
  let busy = false

  function next(): void {
    const begin = short.shift() ?? long.shift()
    if (begin !== undefined) {
      begin()
      return
    }
    busy = false
    for (const idle of idlers.splice(0)) idle()
  }

  function turnOf({ short: isShort, waitMs, late }: Turn): Promise<void> {
    return new Promise((resolve, reject) => {
      if (short.length + long.length >= limits.batchQueueRows) {
        reject(new OnceError('store_busy', `More than ${limits.batchQueueRows} requests wait for the memory store.`))
        return
      }
      const line = isShort ? short : long
      const begin = () => {
        timer.cancel()
        resolve()
      }
      const timer = time.setTimer(waitMs, () => {
        line.splice(line.indexOf(begin), 1)
        reject(late())
      })
      line.push(begin)
    })
  }

  return {
    run: async (turn, work) => {
      if (busy) await turnOf(turn)
      busy = true
      try {
        return await work()
      } finally {
        next()
      }
    },
    isFree: () => !busy,
    idle: () => (busy ? new Promise((resolve) => idlers.push(resolve)) : Promise.resolve()),
  }
}
