import type { Runtime } from '../../runtime/runtime.ts'
import type { AppliedWord } from '../core/errors.ts'
import { isOnceError, OnceError } from '../core/errors.ts'
import { limits } from '../core/limits.ts'
import { backoffMs } from '../core/retry.ts'
import { createOverdueWatch } from './overdue.ts'

/**
 * Group commit: items that arrive while a flush is under way form the next flush. Concurrent callers share one
 * statement and one fsync; a single caller waits for no other.
 */
export interface GroupCommit<I, A> {
  /** Without a time-out the item waits as long as the flushes before it take. */
  write(item: I, timeoutMs?: number): Promise<A>
  /** Calls back with the items of every flush, for tests and measurements. */
  onFlush(listener: (items: readonly I[]) => void): void
  /** Refuses further items. Resolves when nothing waits and nothing is under way. */
  stop(refused: () => OnceError): Promise<void>
}

export interface GroupOptions<I, A> {
  /** Flushes under way at once. */
  readonly lanes: number
  /** Commits the items together, and answers in their order. `timeoutMs` is the longest of its callers. */
  flush(items: readonly I[], timeoutMs: number): Promise<readonly A[]>
  /** In bytes, roughly. */
  sizeOf(item: I): number
  /** Items of one key are never under way together, and a flush is in the order of its keys. Null for an item without. */
  keyOf?(item: I): string | null
  /** Lower ones go first. */
  priorityOf?(item: I): Priority
  /** The error of an item that failed alone; null when it did not fail. */
  errorOf?(answer: A): unknown
  /** Whether one item may have failed the flush, and nothing was applied: then the flush is halved until it stands alone. */
  isSpoiled(error: unknown): boolean
  /** Whether an open transaction holds the item's row: then it is repeated apart from the others, until its deadline. */
  isHeld?(error: unknown): boolean
  /**
   * Runs `flush` when the store can begin one; items that arrive until then are part of it. Rejects when the store
   * cannot begin at all, and may give up when nothing is waiting any more. Without it a flush begins at once.
   */
  turn?(flush: () => Promise<void>, isWaiting: () => boolean): Promise<void>
  /** The error of an item whose deadline passed before it was sent. */
  late?(timeoutMs: number): OnceError
}

export type Priority = 0 | 1 | 2

interface Item<I, A> {
  readonly item: I
  readonly key: string | null
  readonly priority: Priority
  readonly bytes: number
  readonly timeoutMs: number
  /** By the runtime's monotonic clock. */
  readonly deadline: number
  tries: number
  /** An open transaction held its row at the last try. */
  held: boolean
  /** The caller has its answer. */
  over: boolean
  resolve(answer: A): void
  reject(error: unknown): void
}

const RETRY = { baseMs: 20, capMs: 1_000 }
/** Up to this many rows, one statement is cheaper than two. */
const SPLIT_ROWS = 64

export function createGroupCommit<I, A>(runtime: Runtime, options: GroupOptions<I, A>): GroupCommit<I, A> {
  type Batch = readonly Item<I, A>[]
  const { lanes } = options
  const queues: [Item<I, A>[], Item<I, A>[], Item<I, A>[]] = [[], [], []]
  /** Keys under way: a record has at most one mutation in flight per process. */
  const busy = new Set<string>()
  const flying = new Set<Batch>()
  const idle: (() => void)[] = []
  const watch = createOverdueWatch(runtime, () => waiting > 0 || flushing > 0, endOverdue)
  let waiting = 0
  let heldWaiting = 0
  let resting = 0
  let flushing = 0
  let scheduled = false
  let stopped: (() => OnceError) | null = null
  let flushed: ((items: readonly I[]) => void) | null = null

  function submit(item: Item<I, A>): void {
    queues[item.priority].push(item)
    waiting++
    if (item.held) heldWaiting++
    schedule()
    watch(item.timeoutMs)
  }

  function endOverdue(now: number): void {
    for (const [index, queue] of queues.entries()) {
      const late = queue.filter(({ deadline }) => deadline <= now)
      if (late.length === 0) continue
      queues[index] = queue.filter(({ deadline }) => deadline > now)
      waiting -= late.length
      for (const item of late) {
        if (item.held) heldWaiting--
        giveUp(item, 'no')
      }
    }
    // What was sent may still take effect; its key stays busy until the store has answered.
    for (const batch of flying) for (const item of batch) if (item.deadline <= now) giveUp(item, 'maybe')
  }

  function giveUp(item: Item<I, A>, applied: AppliedWord): void {
    const late = applied === 'no' ? options.late?.(item.timeoutMs) : undefined
    const text = `The store did not answer within ${Math.round(item.timeoutMs)} ms.`
    reject(item, late ?? new OnceError('store_unavailable', text, { applied }))
  }

  function reject(item: Item<I, A>, error: unknown): void {
    if (item.over) return
    item.over = true
    item.reject(error)
  }

  function schedule(): void {
    if (scheduled || waiting === 0 || flushing >= lanes) return
    scheduled = true
    runtime.soon(begin)
  }

  function begin(): void {
    scheduled = false
    if (options.turn !== undefined) {
      if (waiting > 0 && flushing < lanes) void inTurn(options.turn)
      return
    }
    while (flushing < lanes) {
      const batch = nextBatch()
      if (batch.length === 0) return
      flushing++
      void fly(batch).then(ended)
    }
  }

  async function inTurn(turn: NonNullable<typeof options.turn>): Promise<void> {
    flushing++
    try {
      await turn(
        () => fly(nextBatch()),
        () => waiting > 0,
      )
    } catch (error) {
      for (const queue of queues) for (const item of queue.splice(0)) reject(item, error)
      waiting = 0
      heldWaiting = 0
    }
    ended()
  }

  function ended(): void {
    flushing--
    schedule()
    if (isIdle()) for (const wake of idle.splice(0)) wake()
  }

  function isIdle(): boolean {
    return flushing === 0 && waiting === 0 && resting === 0
  }

  /** Held rows wait apart, one flush at a time: items that shared a flush with them would wait as well. */
  function nextBatch(): Item<I, A>[] {
    const mayHeld = heldWaiting > 0 && ![...flying].some((batch) => batch[0]?.held === true)
    const held = mayHeld ? take(true) : []
    heldWaiting -= held.length
    return held.length > 0 ? held : take(false)
  }

  /** Removes the next flush from the queues: distinct keys, none of them under way, bounded in rows and bytes. */
  function take(held: boolean): Item<I, A>[] {
    const batch: Item<I, A>[] = []
    const most = Math.min(limits.batchRows, shareOf(waiting, lanes - flushing))
    let bytes = 0
    for (const [index, queue] of queues.entries()) {
      if (queue.length === 0) continue
      const left: Item<I, A>[] = []
      for (const item of queue) {
        const room = batch.length < most && (batch.length === 0 || bytes + item.bytes <= limits.batchBytes)
        if (!room || item.held !== held || (item.key !== null && busy.has(item.key))) {
          left.push(item)
          continue
        }
        if (item.key !== null) busy.add(item.key)
        bytes += item.bytes
        batch.push(item)
      }
      queues[index] = left
    }
    waiting -= batch.length
    return batch
  }

  async function fly(batch: Item<I, A>[]): Promise<void> {
    if (batch.length === 0) return
    // One order of keys everywhere, so that two processes never wait for each other in a circle.
    if (batch.length > 1 && options.keyOf !== undefined) batch.sort(byKey)
    flying.add(batch)
    await attempt(batch)
    flying.delete(batch)
  }

  async function attempt(batch: Batch): Promise<void> {
    const items = batch.map(({ item }) => item)
    flushed?.(items)
    let answers: readonly A[]
    try {
      answers = await options.flush(items, longestWait(batch))
    } catch (error) {
      if (batch.length > 1 && options.isSpoiled(error)) {
        const middle = batch.length >> 1
        await attempt(batch.slice(0, middle))
        await attempt(batch.slice(middle))
        return
      }
      for (const item of batch) failed(item, error)
      return
    }
    // By hand: the pairs that `entries` makes are a tenth of what a request leaves to the garbage collector.
    for (let index = 0; index < batch.length; index++) {
      const item = batch[index] as Item<I, A>
      if (index >= answers.length) {
        failed(item, new OnceError('store_unavailable', 'The store gave no answer for a request.'))
        continue
      }
      const answer = answers[index] as A
      const error = options.errorOf?.(answer) ?? null
      if (error !== null) {
        failed(item, error)
        continue
      }
      if (item.key !== null) busy.delete(item.key)
      item.over = true
      item.resolve(answer)
    }
  }

  function longestWait(batch: Batch): number {
    let longest = 0
    for (const { timeoutMs } of batch) longest = Math.max(longest, timeoutMs)
    return Math.min(longest, limits.storeCallMs)
  }

  function failed(item: Item<I, A>, error: unknown): void {
    if (item.key !== null) busy.delete(item.key)
    if (item.over) return
    item.tries++
    item.held = options.isHeld?.(error) === true
    const pauseMs = backoffMs(item.tries, RETRY, runtime.random())
    if (!item.held || runtime.monotonicMs() + pauseMs >= item.deadline) {
      reject(item, error)
      return
    }
    // An item that rests occupies no lane.
    resting++
    runtime.setTimer(
      pauseMs,
      () => {
        resting--
        submit(item)
      },
      false,
    )
  }

  return {
    write: (item, timeoutMs = Number.POSITIVE_INFINITY) =>
      new Promise<A>((resolve, refuse) => {
        if (stopped !== null) {
          refuse(stopped())
          return
        }
        if (waiting >= limits.batchQueueRows) {
          refuse(new OnceError('store_busy', `More than ${limits.batchQueueRows} requests wait for the store.`))
          return
        }
        submit({
          item,
          key: options.keyOf?.(item) ?? null,
          priority: options.priorityOf?.(item) ?? 0,
          bytes: options.sizeOf(item),
          timeoutMs,
          deadline: runtime.monotonicMs() + timeoutMs,
          tries: 0,
          held: false,
          over: false,
          resolve,
          reject: refuse,
        })
      }),
    onFlush: (listener) => void (flushed = listener),
    stop: (refused) => {
      stopped = refused
      return isIdle() ? Promise.resolve() : new Promise((resolve) => void idle.push(resolve))
    },
  }
}

function byKey(a: { readonly key: string | null }, b: { readonly key: string | null }): number {
  return a.key === b.key ? 0 : (a.key ?? '') < (b.key ?? '') ? -1 : 1
}

/** A large crowd is spread over the lanes that are free, so that none of them idles; a small one shares one commit. */
function shareOf(waiting: number, free: number): number {
  return waiting > SPLIT_ROWS && free > 1 ? Math.ceil(waiting / free) : waiting
}

/** For statements whose failure proves that nothing was written, unless the store itself is away. */
export function isStatementSpoiled(error: unknown): boolean {
  return !(isOnceError(error) && error.retryable)
}
