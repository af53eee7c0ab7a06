import type { Fence } from '../../core/identity.ts'
import type { Deadline } from '../../store/deadline.ts'
import { createDeadline, inTime } from '../../store/deadline.ts'
import type { Call } from '../../store/port.ts'
import type { Connection } from './connection.ts'
import { createConnection } from './connection.ts'
import type { RedisClient } from './driver.ts'
import type { Epochs, StoreReset } from './epochs.ts'
import { createEpochs } from './epochs.ts'
import { stoppedError, timeoutError } from './errors.ts'
import type { Bucket, Names } from './names.ts'
import type { Script } from './script.ts'
import { SHARED_ANSWERS, scriptOf, sharedKeys } from './script.ts'

/** What a script found and did. */
export interface Reply {
  readonly now: number
  /** A new fence, larger than all that were given. */
  readonly nextFence: Fence
  readonly answers: readonly unknown[]
}

/** What the parts of one store share. */
export interface Core {
  readonly names: Names
  readonly connection: Connection
  /** Runs the work under a deadline. Refused after `stop`, which waits for it. */
  call<T>(call: Call, work: (deadline: Deadline) => Promise<T>): Promise<T>
  /** The same for requests that were accepted before `stop`. */
  flush<T>(call: Call, work: (deadline: Deadline) => Promise<T>): Promise<T>
  /** Runs a script on one bucket, which it is given the keys of. */
  run(script: Script, bucket: Bucket, asked: Asked, deadline: Deadline): Promise<Reply>
  /** Refuses new calls and waits for those under way; `accepted` ends when all accepted requests were flushed. */
  drain(accepted: Promise<void>): Promise<void>
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
  leftFence: Fence,
  turns: number,
  leftTurns: number,
]

/** Only the shared part: it gives an empty bucket its name, and returns the time. */
const lookScript = scriptOf('no', '')

export function createCore(client: RedisClient, names: Names, report: (event: StoreReset) => void): Core {
  const connection = createConnection(client)
  const epochs: Epochs = createEpochs(names.buckets.length, report)
  const idle: (() => void)[] = []
  let underWay = 0
  let stopped = false
  let looked: Promise<void> | null = null

  async function run(script: Script, bucket: Bucket, { keys = [], args = [] }: Asked, deadline: Deadline) {
    const given = [epochs.candidate(), bucket.number, names.channel, ...args]
    const reply = (await connection.run(script, [...sharedKeys(bucket), ...keys], given, deadline)) as unknown[]
    const [now, epoch, nextFence, fence, leftFence, turns, leftTurns] = reply as SharedAnswers
    epochs.check(bucket, epoch, { fence, turns }, { fence: leftFence, turns: leftTurns })
    return { now, nextFence, answers: reply.slice(SHARED_ANSWERS) }
  }

  /** Before anything is written, every bucket is looked at: processes that disagree about them must not begin. */
  function look(deadline: Deadline): Promise<void> {
    const looking = names.buckets.map((bucket) => run(lookScript, bucket, {}, deadline))
    looked = Promise.all(looking).then(
      () => undefined,
      (error: unknown) => {
        looked = null
        throw error
      },
    )
    return looked
  }

  async function flush<T>({ timeoutMs }: Call, work: (deadline: Deadline) => Promise<T>): Promise<T> {
    underWay += 1
    const deadline = createDeadline(timeoutMs)
    try {
      // Another call may have begun the look, with a later deadline.
      await inTime(looked ?? look(deadline), deadline, () => timeoutError(timeoutMs, 'no'))
      return await work(deadline)
    } finally {
      deadline.end()
      underWay -= 1
      if (underWay === 0) for (const wake of idle.splice(0)) wake()
    }
  }

  return {
    names,
    connection,
    run,
    call: async (given, work) => {
      if (stopped) throw stoppedError()
      return await flush(given, work)
    },
    flush,
    drain: async (accepted) => {
      stopped = true
      await accepted
      if (underWay > 0) await new Promise<void>((resolve) => idle.push(resolve))
    },
  }
}
