import type { Runtime } from '../runtime/runtime.ts'
import type { AppliedWord } from './core/errors.ts'
import { isOnceError, OnceError } from './core/errors.ts'
import { limits } from './core/limits.ts'
import type { DecisionOf, Request } from './core/request.ts'
import { backoffMs } from './core/retry.ts'
import { inDoubt } from './doubt.ts'
import type { Applied, AppliedDecision, Claims } from './store/port.ts'

/**
 * Group commit: what arrives while a flush is under way is the next flush. Many callers share one statement and one
 * fsync, a lonely caller waits for nobody.
 */
export interface Batcher {
  apply<R extends Request>(request: R, timeoutMs?: number): Promise<AppliedDecision<DecisionOf<R>>>
  /** Resolves when nothing waits and nothing is under way. */
  drain(): Promise<void>
}

interface Item {
  readonly request: Request
  readonly timeoutMs: number
  readonly deadline: number
  readonly bytes: number
  tries: number
  /** An earlier try may have taken effect. */
  indeterminate: boolean
  /** Somebody's open transaction held its row at the last try. */
  held: boolean
  /** The caller has its answer. */
  over: boolean
  resolve(applied: AppliedDecision): void
  reject(error: OnceError): void
}

const RETRY = { baseMs: 20, capMs: 1_000 }
/** Up to here one statement is cheaper than two. */
const SPLIT_ROWS = 64
/** Tries of a request that the store refused for certain: a store that is down is reported soon, not after a minute. */
const TRIES_WHEN_NOT_APPLIED = 4
/** Deadlines are kept this precisely: almost nobody ever reaches one, so they share one timer. */
const OVERDUE_EVERY_MS = 250

/** Heartbeats first, then outcomes, then what starts something new: under pressure, what runs must be able to end. */
const priority: Record<Request['kind'], 0 | 1 | 2> = {
  renew: 0,
  start: 0,
  attach: 0,
  settle: 1,
  release: 1,
  claim: 2,
  reconcile: 2,
  probe: 2,
  resolve: 2,
  forget: 2,
  unique: 2,
}

export function createBatcher(claims: Claims, runtime: Runtime): Batcher {
  const queues: [Item[], Item[], Item[]] = [[], [], []]
  /** Ids of requests under way: a record has at most one mutation in flight per process. */
  const busy = new Set<string>()
  const flying = new Set<readonly Item[]>()
  const idle: (() => void)[] = []
  let waiting = 0
  let heldWaiting = 0
  let resting = 0
  let lanes = 0
  let scheduled = false
  let watching = false

  function submit(item: Item): void {
    queues[priority[item.request.kind]].push(item)
    waiting++
    if (item.held) heldWaiting++
    schedule()
    watch()
  }

  /** A store that hangs must keep nobody beyond the deadline: neither who was sent to it nor who waits for a lane. */
  function watch(): void {
    if (watching || (waiting === 0 && lanes === 0)) return
    watching = true
    runtime.setTimer(
      OVERDUE_EVERY_MS,
      () => {
        watching = false
        endOverdue(runtime.monotonicMs())
        watch()
      },
      true,
    )
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
    // What was sent may take effect after all; its id stays busy until the store has answered.
    for (const batch of flying) for (const item of batch) if (item.deadline <= now) giveUp(item, 'maybe')
  }

  function giveUp(item: Item, applied: AppliedWord): void {
    if (item.over) return
    const text = `The store did not answer within ${Math.round(item.timeoutMs)} ms.`
    reject(item, new OnceError('store_unavailable', text, { applied }))
  }

  function reject(item: Item, fault: OnceError): void {
    item.over = true
    item.reject(item.indeterminate ? inDoubt(fault) : fault)
  }

  function schedule(): void {
    if (scheduled || waiting === 0 || lanes >= claims.lanes) return
    scheduled = true
    runtime.soon(() => {
      scheduled = false
      while (lanes < claims.lanes) {
        const batch = nextBatch()
        if (batch.length === 0) break
        void fly(batch)
      }
    })
  }

  /** Rows that are held wait among themselves, one flush at a time: whoever shared a batch with them would wait, too. */
  function nextBatch(): Item[] {
    const mayHeld = heldWaiting > 0 && ![...flying].some((batch) => batch[0]?.held === true)
    const held = mayHeld ? take(true) : []
    heldWaiting -= held.length
    return held.length > 0 ? held : take(false)
  }

  /** Removes the next flush from the queues: distinct ids, none of them under way, bounded in rows and bytes. */
  function take(held: boolean): Item[] {
    const batch: Item[] = []
    const most = Math.min(limits.batchRows, shareOf(waiting, claims.lanes - lanes))
    let bytes = 0
    for (const [index, queue] of queues.entries()) {
      const left: Item[] = []
      for (const item of queue) {
        const room = batch.length < most && (batch.length === 0 || bytes + item.bytes <= limits.batchBytes)
        if (!room || item.held !== held || busy.has(item.request.id)) {
          left.push(item)
          continue
        }
        busy.add(item.request.id)
        bytes += item.bytes
        batch.push(item)
      }
      queues[index] = left
    }
    waiting -= batch.length
    return batch
  }

  async function fly(batch: Item[]): Promise<void> {
    lanes++
    // One order of ids everywhere, so that two processes never wait for each other in a circle.
    if (batch.length > 1) batch.sort((a, b) => (a.request.id < b.request.id ? -1 : 1))
    flying.add(batch)
    await attempt(batch)
    flying.delete(batch)
    lanes--
    schedule()
    if (lanes === 0 && waiting === 0 && resting === 0) for (const wake of idle.splice(0)) wake()
  }

  async function attempt(batch: Item[]): Promise<void> {
    const requests = batch.map((item) => item.request)
    let answers: readonly Applied[]
    try {
      answers = await claims.apply(requests, { timeoutMs: limits.storeCallMs })
    } catch (error) {
      const fault = asStoreError(error)
      // One row spoils the batch: halve it until that row stands alone.
      if (fault.applied === 'no' && batch.length > 1 && (fault.code === 'row_refused' || fault.code === 'store_busy')) {
        const middle = batch.length >> 1
        await attempt(batch.slice(0, middle))
        await attempt(batch.slice(middle))
        return
      }
      for (const item of batch) failed(item, fault)
      return
    }
    // By hand: the pairs that `entries` makes are a tenth of what a request leaves to the garbage collector.
    for (let index = 0; index < batch.length; index++) {
      const item = batch[index] as Item
      const answer = answers[index]
      if (answer === undefined)
        failed(item, new OnceError('store_unavailable', 'The store gave no answer for a request.'))
      else if ('error' in answer) failed(item, answer.error)
      else {
        busy.delete(item.request.id)
        item.over = true
        item.resolve(answer)
      }
    }
  }

  function failed(item: Item, fault: OnceError): void {
    busy.delete(item.request.id)
    if (item.over) return
    item.tries++
    item.held = fault.code === 'store_busy'
    if (fault.applied === 'maybe') item.indeterminate = true
    const pauseMs = backoffMs(item.tries, RETRY, runtime.random())
    const inTime = runtime.monotonicMs() + pauseMs < item.deadline
    if (!inTime || !mayRepeat(item, fault)) {
      reject(item, fault)
      return
    }
    // A resting request holds no lane: the others go on.
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
    apply<R extends Request>(request: R, timeoutMs: number = limits.storeCallMs) {
      return new Promise<AppliedDecision<DecisionOf<R>>>((resolve, refuse) => {
        if (waiting >= limits.batchQueueRows) {
          refuse(new OnceError('store_busy', `More than ${limits.batchQueueRows} requests wait for the store.`))
          return
        }
        const deadline = runtime.monotonicMs() + timeoutMs
        submit({
          request,
          timeoutMs,
          deadline,
          bytes: bytesOf(request),
          tries: 0,
          indeterminate: false,
          held: false,
          over: false,
          resolve: resolve as (applied: AppliedDecision) => void,
          reject: refuse,
        })
      })
    },
    drain() {
      if (lanes === 0 && waiting === 0 && resting === 0) return Promise.resolve()
      return new Promise((resolve) => void idle.push(resolve))
    },
  }
}

/** A large crowd is spread over the lanes that are free, so that none of them idles; a small one shares one commit. */
function shareOf(waiting: number, free: number): number {
  return waiting > SPLIT_ROWS && free > 1 ? Math.ceil(waiting / free) : waiting
}

/** Most requests carry a claim id and may be repeated whatever happened; a person's actions may not. */
function mayRepeat(item: Item, fault: OnceError): boolean {
  if (!fault.retryable || fault.code === 'stopped') return false
  if (fault.applied === 'no' && fault.code !== 'store_busy') return item.tries < TRIES_WHEN_NOT_APPLIED
  const { kind } = item.request
  return fault.applied === 'no' || (kind !== 'resolve' && kind !== 'forget')
}

const ROW_BYTES = 400

function bytesOf(request: Request): number {
  if (request.kind !== 'settle' || request.to.state === 'unknown') return ROW_BYTES
  return ROW_BYTES + (request.to.outcome.data?.length ?? 0)
}

function asStoreError(error: unknown): OnceError {
  if (isOnceError(error)) return error
  return new OnceError('store_unavailable', 'The store failed in an unforeseen way.', {
    cause: error,
    applied: 'maybe',
  })
}
