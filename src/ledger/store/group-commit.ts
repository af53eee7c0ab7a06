import type { Awaitable, Runtime } from '../../runtime/runtime.ts'
import type { AppliedWord } from '../core/errors.ts'
import { isOnceError, OnceError } from '../core/errors.ts'
import { limits } from '../core/limits.ts'
import { backoffMs } from '../core/retry.ts'
import { byKey, leave, placeOf, shareOf } from './group-items.ts'
import type { GroupOptions, Priority } from './group-options.ts'
import { createOverdueWatch } from './overdue.ts'

/**
 * Group commit: items that arrive while a flush is under way form the next flush. Concurrent callers share one
 * statement and one fsync; a single caller waits for no other.
 *
 * While each flush had a single item, the next item is sent at once. The first item of a burst is therefore sent alone,
 * and a burst costs at most one more commit than its items gathered would; after a flush of several, items are gathered
 * again.
 *
 * Where the store can commit an item before the call returns, it blocks the process meanwhile: few items of one turn of the
 * event loop are committed so, and none when several callers could share a commit.
 */
export interface GroupCommit<I, A> {
  /**
   * Without a time-out the item waits as long as the flushes before it take. The answer is no promise when the store
   * could commit the item before this returns; every error rejects.
   */
  write(item: I, timeoutMs?: number): Awaitable<A>
  /** Calls back with the items of every flush, for tests and measurements. */
  onFlush(listener: (items: readonly I[]) => void): void
  /** Refuses further items. Resolves when nothing waits and nothing is under way. */
  stop(refused: () => OnceError): Promise<void>
}

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
  /** The store has answered, so that another item of this key may be sent. */
  free: boolean
  resolve(answer: A): void
  reject(error: unknown): void
}

const RETRY = { baseMs: 20, capMs: 1_000 }
/** The commit of a SQL store costs about as much as so many of its rows. */
const SPLIT_ROWS = 64
/** Sockets and timers wait for no more commits than this; a single caller's claim and settle are two. */
const WRITES_PER_TURN = 8

export function createGroupCommit<I, A>(runtime: Runtime, options: GroupOptions<I, A>): GroupCommit<I, A> {
  type Batch = readonly Item<I, A>[]
  const { lanes, splitRows = SPLIT_ROWS, errorOf = () => null, flushNow, keyOf } = options
  const queues: [Item<I, A>[], Item<I, A>[], Item<I, A>[]] = [[], [], []]
  /** The flushes under way, each sorted by key: a record has at most one mutation in flight per process. */
  const flying: Batch[] = []
  const idle: (() => void)[] = []
  const watch = createOverdueWatch(runtime, () => waiting > 0 || flushing > 0, endOverdue)
  let waiting = 0
  let heldWaiting = 0
  let resting = 0
  let flushing = 0
  let scheduled = false
  /** The last flush had a single item: the next one is not worth waiting for others. */
  let alone = false
  /** In this turn of the event loop: items that were committed alone, and the key of the last of them. */
  let turnWrites = 0
  let turnKey: string | null = null
  /** The last key was written once only: its caller is probably at work, so another key is of another caller. */
  let turnOpen = false
  /** Two callers wrote in one turn since the last flush of a single item: their items are to be gathered. */
  let crowded = false
  let stopped: (() => OnceError) | null = null
  let flushed: ((items: readonly I[]) => void) | null = null

  function submit(item: Item<I, A>): void {
    queues[item.priority].push(item)
    waiting++
    if (item.held) heldWaiting++
    // At once when nothing else is under way, so that a single caller waits for no turn of the event loop.
    if (alone && flushNow === undefined && waiting === 1 && flushing === 0) begin()
    else schedule()
    watch(item.timeoutMs)
  }

  function endOverdue(now: number): void {
    for (const queue of queues) {
      const late = queue.filter(({ deadline }) => deadline <= now)
      if (late.length === 0) continue
      leave(queue, (item) => item.deadline > now)
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
    runtime.soon(beginScheduled)
  }

  function beginScheduled(): void {
    scheduled = false
    begin()
  }

  function begin(): void {
    if (options.turn !== undefined) {
      if (waiting > 0 && flushing < lanes) void inTurn(options.turn)
      return
    }
    while (flushing < lanes) {
      const batch = nextBatch()
      if (batch.length === 0) return
      flushing++
      void fly(batch)
    }
  }

  async function inTurn(turn: NonNullable<typeof options.turn>): Promise<void> {
    let begun = false
    flushing++
    try {
      await turn(
        async () => {
          const batch = nextBatch()
          begun = batch.length > 0
          if (begun) await fly(batch)
        },
        () => waiting > 0,
      )
    } catch (error) {
      for (const queue of queues) for (const item of queue.splice(0)) reject(item, error)
      waiting = 0
      heldWaiting = 0
    }
    if (begun) return
    flushing--
    next()
  }

  function next(): void {
    schedule()
    if (isIdle()) for (const wake of idle.splice(0)) wake()
  }

  function isIdle(): boolean {
    return flushing === 0 && waiting === 0 && resting === 0
  }

  /** Held rows wait apart, one flush at a time: items that shared a flush with them would wait as well. */
  function nextBatch(): Item<I, A>[] {
    const held = heldWaiting > 0 && flying.every((batch) => batch[0]?.held !== true) ? take(true) : []
    heldWaiting -= held.length
    return held.length > 0 ? held : take(false)
  }

  /** Removes the next flush from the queues: distinct keys, none of them under way, bounded in rows and bytes. */
  function take(held: boolean): Item<I, A>[] {
    const batch: Item<I, A>[] = []
    const most = Math.min(limits.batchRows, shareOf(waiting, lanes - flushing, splitRows))
    let bytes = 0
    for (const queue of queues) {
      leave(queue, (item) => {
        const room = batch.length < most && (batch.length === 0 || bytes + item.bytes <= limits.batchBytes)
        if (!room || item.held !== held || isUnderWay(item.key)) return true
        bytes += item.bytes
        item.free = false
        batch.push(item)
        return false
      })
    }
    // One order of keys everywhere, so that two processes never wait for each other in a circle.
    if (batch.length > 1 && keyOf !== undefined) batch.sort(byKey)
    giveBackTwins(batch)
    waiting -= batch.length
    return batch
  }

  /** Of several items with one key the first stays; the sort has put them side by side, in the order in which they came. */
  function giveBackTwins(batch: Item<I, A>[]): void {
    const twins = batch.filter(({ key }, place) => key !== null && key === batch[place - 1]?.key)
    if (twins.length === 0) return
    leave(batch, (item) => !twins.includes(item))
    for (const twin of twins.reverse()) {
      twin.free = true
      queues[twin.priority].unshift(twin)
    }
  }

  function isUnderWay(key: string | null): boolean {
    if (key === null) return false
    for (const batch of flying) {
      const item: Item<I, A> | undefined = batch[placeOf(batch, key)]
      if (item?.key === key && !item.free) return true
    }
    return false
  }

  async function fly(batch: Item<I, A>[]): Promise<void> {
    alone = batch.length === 1 && !crowded
    if (batch.length === 1) crowded = false
    if (alone && flushNow !== undefined) noteAlone((batch[0] as Item<I, A>).key)
    flying.push(batch)
    await attempt(batch, batch)
  }

  /** `flight` is the whole flush, where this is the last part of it. */
  async function attempt(batch: Batch, flight: Batch | null): Promise<void> {
    const items = batch.map(({ item }) => item)
    flushed?.(items)
    let answers: readonly A[] = []
    let fault: unknown = null
    try {
      const sent = options.flush(items, longestWait(batch))
      answers = sent instanceof Promise ? await sent : sent
    } catch (error) {
      if (batch.length > 1 && options.isSpoiled(error)) {
        const middle = batch.length >> 1
        await attempt(batch.slice(0, middle), null)
        await attempt(batch.slice(middle), flight)
        return
      }
      fault = error ?? unanswered()
    }
    // Before the callers have their answers, so that what they send next finds the lane free.
    if (flight !== null) {
      flying.splice(flying.indexOf(flight), 1)
      flushing--
    }
    // By hand: the pairs that `entries` makes are a tenth of what a request leaves to the garbage collector.
    for (let index = 0; index < batch.length; index++) {
      const item = batch[index] as Item<I, A>
      const error = fault ?? (index < answers.length ? errorOf(answers[index] as A) : unanswered())
      if (error !== null) {
        failed(item, error)
        continue
      }
      item.free = true
      item.over = true
      item.resolve(answers[index] as A)
    }
    if (flight !== null) next()
  }

  function longestWait(batch: Batch): number {
    let longest = 0
    for (const { timeoutMs } of batch) longest = Math.max(longest, timeoutMs)
    return Math.min(longest, limits.storeCallMs)
  }

  function failed(item: Item<I, A>, error: unknown): void {
    item.free = true
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

  /** Makes the item, and hands it to `next`: to the queues, or to what becomes of an item that failed. */
  function pending(item: I, timeoutMs: number, next: (item: Item<I, A>) => void): Promise<A> {
    return new Promise((resolve, refuse) =>
      next({
        item,
        key: keyOf?.(item) ?? null,
        priority: options.priorityOf?.(item) ?? 0,
        bytes: options.sizeOf(item),
        timeoutMs,
        deadline: runtime.monotonicMs() + timeoutMs,
        tries: 0,
        held: false,
        over: false,
        free: true,
        resolve,
        reject: refuse,
      }),
    )
  }

  function endTurn(): void {
    turnWrites = 0
    turnKey = null
  }

  function noteAlone(key: string | null): void {
    if (turnWrites++ === 0) runtime.soon(endTurn)
    turnOpen = key !== turnKey || key === null
    turnKey = key
  }

  /** Whether this item may be committed before `write` returns; if so, it is counted. */
  function mayWriteAlone(key: string | null): boolean {
    const same = key !== null && key === turnKey
    const other = turnWrites > 0 && turnOpen && !same
    if (other) crowded = true
    // Items of one key never share a commit, so that nothing is gained by waiting.
    if (other || turnWrites >= WRITES_PER_TURN) return false
    noteAlone(key)
    return true
  }

  return {
    write: (item, timeoutMs = Number.POSITIVE_INFINITY) => {
      if (stopped !== null) return Promise.reject(stopped())
      const isFree = flushNow !== undefined && alone && waiting === 0 && flushing === 0
      if (isFree && mayWriteAlone(keyOf?.(item) ?? null)) {
        try {
          const answer = flushNow(item)
          if (answer !== undefined) {
            flushed?.([item])
            return answer
          }
        } catch (error) {
          flushed?.([item])
          return pending(item, timeoutMs, (made) => failed(made, error))
        }
      }
      if (waiting < limits.batchQueueRows) return pending(item, timeoutMs, submit)
      return Promise.reject(
        new OnceError('store_busy', `More than ${limits.batchQueueRows} requests wait for the store.`),
      )
    },
    onFlush: (listener) => void (flushed = listener),
    stop: (refused) => {
      stopped = refused
      return isIdle() ? Promise.resolve() : new Promise((resolve) => void idle.push(resolve))
    },
  }
}

function unanswered(): OnceError {
  return new OnceError('store_unavailable', 'The store gave no answer for a request.')
}

/** For statements whose failure proves that nothing was written, unless the store itself is away. */
export function isStatementSpoiled(error: unknown): boolean {
  return !(isOnceError(error) && error.retryable)
}
