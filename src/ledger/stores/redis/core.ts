import type { Fence } from '../../core/identity.ts'
import { createCallsUnderWay } from '../../store/calls-under-way.ts'
import type { Call } from '../../store/port.ts'
import type { CallDeadline, Connection } from './connection.ts'
import { createConnection, deadlineIn } from './connection.ts'
import type { RedisClient } from './driver.ts'
import type { StoreReset } from './epochs.ts'
import { createEpochs } from './epochs.ts'
import { stoppedError, timeoutError } from './errors.ts'
import { refuseEviction } from './eviction.ts'
import type { Bucket, Names } from './names.ts'
import type { Script } from './script.ts'
import { SHARED_ANSWERS, scriptOf } from './script.ts'

/** What a script found and did. */
export interface Reply {
  readonly now: number
  /** A new fence, larger than all that were given. */
  readonly nextFence: Fence
  /** From `SHARED_ANSWERS` on, what the script itself answered. */
  readonly all: readonly unknown[]
}

/** What the parts of one store share. */
export interface Core {
  readonly names: Names
  readonly connection: Connection
  /** Runs the work under a deadline. Refused after `stop`, which waits for it. */
  call<T>(call: Call, work: (deadline: CallDeadline) => Promise<T>): Promise<T>
  /** The same for requests that were accepted before `stop`, and whose callers are answered in time by the group commit. */
  flush<T>(call: Call, work: (deadline: CallDeadline) => Promise<T>): Promise<T>
  /** Runs a script on one bucket, which it is given the keys of, and returns what the script itself answered. */
  run(script: Script, bucket: Bucket, asked: Asked, deadline: CallDeadline): Promise<Answered>
  /** The same without a copy of anything: `words` begins with `wordsFor`. */
  send(script: Script, bucket: Bucket, words: string[], deadline: CallDeadline): Promise<Reply>
  /** Refuses new calls and waits for those under way; `accepted` ends when all accepted requests were flushed. */
  drain(accepted: Promise<void>): Promise<void>
}

export interface Answered {
  readonly now: number
  readonly answers: readonly unknown[]
}

export interface Asked {
  readonly keys?: readonly string[]
  readonly args?: readonly (string | number)[]
}

type SharedAnswers = [
  now: number,
  epoch: string,
  nextFence: Fence,
  fence: Fence,
  turns: number,
  leftFence: Fence,
  leftTurns: number,
]

/** Only the shared part: it gives an empty bucket its name, and returns the time. */
const lookScript = scriptOf('no', '')

export interface CoreParts {
  readonly client: RedisClient
  readonly names: Names
  readonly allowEviction: boolean
  readonly report: (event: StoreReset) => void
}

export function createCore({ client, names, allowEviction, report }: CoreParts): Core {
  const connection = createConnection(client)
  const epochs = createEpochs(names.buckets.length, report)
  const underWay = createCallsUnderWay(stoppedError)
  let looking: Promise<void> | null = null
  let hasLooked = false

  async function send(script: Script, bucket: Bucket, words: string[], deadline: CallDeadline): Promise<Reply> {
    // Compared as answers arrive: one that waits for its script to be sent again would come after a later one.
    const all = (await connection.run(script, words, deadline, (answer) => {
      const [, epoch, , fence, turns, leftFence, leftTurns] = answer as SharedAnswers
      epochs.check(bucket, epoch, { fence, turns }, { fence: leftFence, turns: leftTurns })
    })) as unknown[]
    const [now, , nextFence] = all as SharedAnswers
    return { now, nextFence, all }
  }

  async function run(script: Script, bucket: Bucket, { keys = [], args = [] }: Asked, deadline: CallDeadline) {
    const words = wordsFor(script, bucket, keys, names)
    for (const arg of args) words.push(String(arg))
    const { now, all } = await send(script, bucket, words, deadline)
    return { now, answers: all.slice(SHARED_ANSWERS) }
  }

  async function examine(deadline: CallDeadline): Promise<void> {
    if (!allowEviction) await refuseEviction(connection, names, deadline)
    await Promise.all(names.buckets.map((bucket) => run(lookScript, bucket, {}, deadline)))
  }

  /** Before anything is written, every bucket is looked at: processes that disagree about them must not begin. */
  function look(deadline: CallDeadline): Promise<void> {
    looking ??= examine(deadline).then(
      () => void (hasLooked = true),
      (error: unknown) => {
        looking = null
        throw error
      },
    )
    // Another call may have begun the look, with a later deadline.
    return inTime(looking, deadline)
  }

  function flush<T>({ timeoutMs }: Call, work: (deadline: CallDeadline) => Promise<T>): Promise<T> {
    underWay.begin()
    const deadline = deadlineIn(timeoutMs)
    const working = hasLooked ? work(deadline) : look(deadline).then(() => work(deadline))
    // In two arms instead of `finally`, which would make two promises more for every flush.
    return working.then(
      (value) => {
        underWay.end()
        return value
      },
      (error: unknown) => {
        underWay.end()
        throw error
      },
    )
  }

  return {
    names,
    connection,
    run,
    send,
    call: async (given, work) => {
      underWay.check()
      return await flush(given, work)
    },
    flush,
    drain: underWay.drain,
  }
}

/** How the call of a script begins: up to its own arguments. */
export function wordsFor(script: Script, bucket: Bucket, keys: readonly string[], names: Names): string[] {
  const shared = script.sharedKeys(bucket)
  const words = [script.sha, String(shared.length + keys.length), ...shared, ...keys]
  words.push(String(bucket.number), String(names.buckets.length), names.channel)
  return words
}

/** A longer timer of Node's fires at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

function inTime(looking: Promise<void>, { timeoutMs, endsAtMs }: CallDeadline): Promise<void> {
  return new Promise((resolve, reject) => {
    const late = () => reject(timeoutError(timeoutMs, 'no'))
    const timer = setTimeout(late, Math.min(LONGEST_TIMER_MS, Math.max(0, endsAtMs - performance.now())))
    looking.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
