import { OnceError } from '../../core/errors.ts'
import { limits } from '../../core/limits.ts'

/** SQLite has one writer. All callers of this process that need it wait in this queue. */
export interface WriterQueue {
  /** Runs the work alone, once `begin` could take the write lock. */
  run<T>(turn: WriterTurn, work: () => T | Promise<T>): Promise<T>
  /** There is a writer, or a waiter: without them work that ends before the caller returns needs no turn. */
  readonly serving: boolean
  /** Settles when there is no writer and no waiter, or after this time; 0 waits for as long as it takes. */
  idle(mostMs?: number): Promise<void>
}

export type Lane = 'batch' | 'transaction' | 'upkeep'

export interface WriterTurn {
  readonly lane: Lane
  readonly waitMs: number
  /** False when another process holds the lock; it is asked again soon. Throws when there is no hope. */
  begin(): boolean
  /** The error of a caller whose turn did not come in time. Nothing was written then. */
  late(waitedMs: number): OnceError
}

/**
 * How much later than it came a caller is served. Group commits carry renewals and settles of running attempts, so they go
 * before transactions; but the lead is bounded, so that a stream of them cannot starve the others. Upkeep keeps to its share
 * of the time by itself, in parts of milliseconds: it waits for a burst to pass, not for a busy store.
 */
const patienceMs: Record<Lane, number> = { batch: 0, transaction: 50, upkeep: 20 }
/** While a transaction waits as well, upkeep waits this long: it is never urgent. */
const UPKEEP_BEHIND_TRANSACTIONS_MS = 200

/** Pauses between two questions for a lock that another process holds: short, jittered, and never a busy loop. */
const BUSY_PAUSE_LEAST_MS = 1
const BUSY_PAUSE_MOST_MS = 8

interface Waiting {
  readonly turn: WriterTurn
  readonly since: number
  readonly work: () => unknown
  resolve(value: unknown): void
  reject(error: unknown): void
  timer: NodeJS.Timeout | null
}

export function createWriterQueue(): WriterQueue {
  const lines: Record<Lane, Waiting[]> = { batch: [], transaction: [], upkeep: [] }
  const idlers: (() => void)[] = []
  /** Work was done in this turn of the event loop already; sockets and timers come before more of it. */
  let worked = false

  function first(): Waiting | null {
    let best: Waiting | null = null
    for (const line of [lines.batch, lines.transaction, lines.upkeep]) {
      const head = line[0]
      if (head !== undefined && (best === null || rank(head) < rank(best))) best = head
    }
    return best
  }

  function rank({ turn: { lane }, since }: Waiting): number {
    const behind = lane === 'upkeep' && lines.transaction.length > 0
    return since + (behind ? UPKEEP_BEHIND_TRANSACTIONS_MS : patienceMs[lane])
  }

  function leave(waiting: Waiting): void {
    const line = lines[waiting.turn.lane]
    line.splice(line.indexOf(waiting), 1)
    if (waiting.timer !== null) clearTimeout(waiting.timer)
  }

  /** The usual case: no writer, no waiter, and a free lock. A group commit is over before `run` returns. */
  function atOnce(waiting: Waiting): boolean {
    if (queue.serving || worked) return false
    try {
      if (!waiting.turn.begin()) return false
    } catch (error) {
      waiting.reject(error)
      return true
    }
    noteWork()
    const going = start(waiting)
    if (going !== null) {
      queue.serving = true
      void going.then(serve)
    }
    return true
  }

  async function serve(): Promise<void> {
    queue.serving = true
    let tries = 0
    if (worked) await nextTurn()
    for (let next = first(); next !== null; next = first()) {
      const begun = tryBegin(next)
      if (begun === null) continue
      if (!begun) {
        await pause(tries++)
        continue
      }
      tries = 0
      leave(next)
      const going = start(next)
      if (going !== null) await going
      noteWork()
      if (first() !== null) await nextTurn()
    }
    queue.serving = false
    for (const idle of idlers.splice(0)) idle()
  }

  function noteWork(): void {
    if (worked) return
    worked = true
    setImmediate(() => {
      worked = false
    })
  }

  /** Null when a retry cannot help; the caller has got its error. */
  function tryBegin(next: Waiting): boolean | null {
    try {
      return next.turn.begin()
    } catch (error) {
      leave(next)
      next.reject(error)
      return null
    }
  }

  function enter(waiting: Waiting): void {
    const { lane, waitMs, late } = waiting.turn
    if (lines[lane].length >= limits.waiters) {
      waiting.reject(new OnceError('store_busy', `${limits.waiters} calls already wait for SQLite's only writer.`))
      return
    }
    lines[lane].push(waiting)
    waiting.timer = setTimeout(() => {
      leave(waiting)
      waiting.reject(late(performance.now() - waiting.since))
    }, waitMs)
    if (!queue.serving) void serve()
  }

  const queue = {
    serving: false,
    run: <T>(turn: WriterTurn, work: () => T | Promise<T>) =>
      new Promise<T>((resolve, reject) => {
        const settle = resolve as (value: unknown) => void
        const waiting = { turn, work, since: performance.now(), resolve: settle, reject, timer: null }
        if (!atOnce(waiting)) enter(waiting)
      }),
    idle: (mostMs = 0): Promise<void> =>
      new Promise((resolve) => {
        if (!queue.serving) return resolve()
        idlers.push(resolve)
        if (mostMs > 0) setTimeout(resolve, mostMs).unref()
      }),
  }
  return queue
}

/** Null when the work is over at once. */
function start({ work, resolve, reject }: Waiting): Promise<void> | null {
  try {
    const result = work()
    if (result instanceof Promise) return result.then(resolve, reject)
    resolve(result)
  } catch (error) {
    reject(error)
  }
  return null
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve))
}

export function pause(tries: number): Promise<void> {
  const most = Math.min(BUSY_PAUSE_LEAST_MS * 2 ** Math.min(tries, 10), BUSY_PAUSE_MOST_MS)
  return new Promise((resolve) => void setTimeout(resolve, BUSY_PAUSE_LEAST_MS + Math.random() * most))
}
