import { OnceError } from '../ledger/core/errors.ts'
import { limits } from '../ledger/core/limits.ts'
import { nearestName } from '../ledger/core/nearest.ts'
import { checkOptions, wholeOption } from '../ledger/core/option-names.ts'
import type { Queue, QueueRate } from './entry.ts'
import { checkId, checkName } from './names.ts'

export type { Queue, QueueRate } from './entry.ts'

export interface QueueOptions {
  /**
   * Runs of this queue that have begun and not ended, over all processes. A run that sleeps or waits keeps its place.
   * @default unlimited
   */
  readonly concurrency?: number
  /** The same for the runs of one `key`. @default unlimited */
  readonly perKey?: number
  /** Runs that begin within any span of `perMs` milliseconds, over all processes. @default unlimited */
  readonly rate?: QueueRate
  /** The priority of runs that are enqueued without one: higher ones begin first. @default 0 */
  readonly priority?: number
}

export interface EnqueueOptions<I> {
  /** What defineQueue returned, or its name. */
  readonly queue: Queue | string
  /** What the body gets; plain data. */
  readonly input: I
  /** The identity of the run: enqueuing it again returns the same run. @default a new one */
  readonly runId?: string
  /** The run's key: keys take turns, and `perKey` limits each of them. @default none, which counts as one key */
  readonly key?: string
  /** The run does not begin earlier than so many milliseconds from now. @default 0 */
  readonly delayMs?: number
  /** Higher ones begin first; runs of one priority in turns of their keys. @default that of the queue */
  readonly priority?: number
  /** While a run of this name waits or runs in the queue, enqueuing another one returns that run. @default none */
  readonly dedupKey?: string
}

/**
 * Declares a queue; give it to `createEngine`. Its limits hold over all processes of one store.
 *
 * @example
 * ```ts
 * import { createLedger } from 'onceonly'
 * import { createEngine, defineQueue, defineRun } from 'onceonly/run'
 * import { sqliteStore } from 'onceonly/sqlite'
 *
 * const send = defineRun('send', async (run, to: string) => run.step('send', () => `sent to ${to}`))
 * const mail = defineQueue('mail', { concurrency: 20, perKey: 2, rate: { limit: 100, perMs: 60_000 } })
 * const once = createLedger({ store: sqliteStore('runs.db') })
 * const engine = await createEngine({ ledger: once, runs: [send], queues: [mail] })
 * const handle = await engine.enqueue(send, { queue: mail, key: 'acme', input: 'ann@example.com' })
 * console.log(await handle.result())
 * ```
 */
export function defineQueue(name: string, options: QueueOptions = {}): Queue {
  checkName('queue', name)
  checkOptions('defineQueue', options, { concurrency: true, perKey: true, rate: true, priority: true })
  const { concurrency = null, perKey = null, rate = null, priority = 0 } = options
  const whose = `The queue ${name}:`
  if (concurrency !== null) wholeOption(whose, 'concurrency', concurrency, 1, limits.runQueuePlaces)
  if (perKey !== null) wholeOption(whose, 'perKey', perKey, 1, limits.runQueuePlaces)
  if (rate !== null) {
    checkOptions(`The rate of the queue ${name}`, rate, { limit: true, perMs: true })
    wholeOption(whose, 'rate.limit', rate.limit, 1, limits.runQueueRate)
    wholeOption(whose, 'rate.perMs', rate.perMs, 1, limits.runQueueSpanMs)
  }
  checkPriority(whose, priority)
  return { name, concurrency, perKey, rate, priority }
}

/** The queue that is meant. Everything is checked before anything is written. */
export function checkEnqueue(
  queues: ReadonlyMap<string, Queue>,
  given: EnqueueOptions<unknown> & { readonly runId: string },
): Queue {
  const known = {
    queue: true,
    input: true,
    runId: true,
    key: true,
    delayMs: true,
    priority: true,
    dedupKey: true,
  } as const
  checkOptions('`enqueue`', given, known)
  const { queue: wanted, runId, key, delayMs, priority, dedupKey } = given
  checkId('run', runId)
  if (key !== undefined) checkId('key of a queue', key)
  if (dedupKey !== undefined) checkId('dedupKey', dedupKey)
  if (delayMs !== undefined) wholeOption('`enqueue`', 'delayMs', delayMs, 0, limits.runQueueDelayMs)
  if (priority !== undefined) checkPriority('`enqueue`', priority)
  return queueOf(queues, wanted)
}

/** The queue of this engine, by what a caller gave. */
export function queueOf(queues: ReadonlyMap<string, Queue>, wanted: Queue | string): Queue {
  const name = typeof wanted === 'string' ? wanted : wanted?.name
  const queue = queues.get(name)
  if (queue !== undefined) return queue
  const near = typeof name === 'string' ? nearestName(name, [...queues.keys()]) : null
  const advice = near === null ? 'pass it to createEngine as one of `queues`' : `did you mean \`${near}\`?`
  throw new OnceError('bad_option', `The queue ${String(name)} is not registered: ${advice}`)
}

export function checkPriority(whose: string, priority: number): void {
  wholeOption(whose, 'priority', priority, -limits.runQueuePriority, limits.runQueuePriority)
}

/** The queues of an engine by their names. */
export function queuesOf(given: readonly Queue[]): ReadonlyMap<string, Queue> {
  if (!Array.isArray(given)) {
    throw new OnceError('bad_option', 'createEngine needs `queues` as a list of what defineQueue returned.')
  }
  if (given.length > limits.runQueues) {
    throw new OnceError('bad_option', `An engine has at most ${limits.runQueues} queues, not ${given.length}.`)
  }
  const queues = new Map(given.map((each) => [each.name, each]))
  if (queues.size < given.length) throw new OnceError('bad_option', 'Two queues have the same name.')
  return queues
}
