import { limits } from '../../../ledger/core/limits.ts'
import type { SqlSeam } from '../../../ledger/store/sql.ts'
import type { Receive, SubscribeOptions, Subscription } from '../../inbox/port.ts'
import type { Delivery, Queues } from './queues.ts'
import { LOCAL_ROOM } from './tables.ts'

export interface SubscriptionParts {
  readonly queues: Queues
  readonly sql: SqlSeam
  readonly leaseMs: number
  readonly retryMs: number
  failed(error: unknown): void
}

/** What became of a delivery, until it is written. */
type Answer = { readonly kind: 'remove' } | { readonly kind: 'put_off'; readonly delayMs: number }

/** One receiver of a consumer group. It takes only what it hands over at once, so that a crash loses no more turns. */
export async function startSubscription(
  parts: SubscriptionParts,
  { consumer, topics, concurrency }: SubscribeOptions,
  receive: Receive,
): Promise<Subscription> {
  const { queues, sql, leaseMs, retryMs, failed } = parts
  const underWay = new Set<number>()
  const answers = new Map<number, Answer>()
  const bell = createBell()
  let stopped = false
  /** The last look found nothing. */
  let idle = false

  await queues.bind(consumer, topics)
  const watch = sql.listen(LOCAL_ROOM, bell.ring)
  await watch.ready

  async function handle({ seq, message }: Delivery): Promise<void> {
    try {
      const answer = await receive(message)
      answers.set(
        seq,
        answer.kind === 'done' ? { kind: 'remove' } : { kind: 'put_off', delayMs: wholeMs(answer.delayMs) },
      )
    } catch (error) {
      answers.set(seq, { kind: 'put_off', delayMs: retryMs })
      failed(error)
    }
    bell.ring()
  }

  /** Together in few statements; a place is free again only when its answer is durable. */
  async function writeAnswers(): Promise<void> {
    const byDelay = Map.groupBy(answers, ([, answer]) => (answer.kind === 'remove' ? -1 : answer.delayMs))
    for (const [delayMs, group] of byDelay) {
      const seqs = group.map(([seq]) => seq)
      await (delayMs < 0 ? queues.remove(seqs) : queues.putOff(seqs, delayMs))
      for (const seq of seqs) {
        answers.delete(seq)
        underWay.delete(seq)
      }
    }
  }

  async function takeMore(): Promise<boolean> {
    const free = concurrency - underWay.size
    if (stopped || free <= 0) return false
    if (idle && !(await queues.isDue(consumer, topics))) return false
    const taken = await queues.take(consumer, topics, free)
    idle = taken.length === 0
    if (stopped) {
      await queues.giveBack(taken.map(({ seq }) => seq))
      return false
    }
    for (const delivery of taken) {
      underWay.add(delivery.seq)
      void handle(delivery)
    }
    return taken.length > 0
  }

  async function work(): Promise<void> {
    while (!stopped || underWay.size > 0) {
      let more = false
      try {
        await writeAnswers()
        more = await takeMore()
      } catch (error) {
        // The store is away: what was handed over stays ours until its lease ends, and answers are written later.
        failed(error)
        if (stopped && underWay.size === answers.size) return
        await bell.quiet(retryMs)
      }
      if (!more && answers.size === 0 && !(stopped && underWay.size === 0)) await bell.rung(limits.localPollMs)
    }
  }

  const heartbeat = setInterval(() => {
    const seqs = [...underWay].filter((seq) => !answers.has(seq))
    if (seqs.length > 0) queues.keep(seqs).catch(failed)
  }, leaseMs * limits.heartbeatShare)
  heartbeat.unref()

  const life = work()
  return {
    async stop() {
      stopped = true
      watch.stop()
      bell.ring()
      await life
      clearInterval(heartbeat)
    },
  }
}

function wholeMs(delayMs: number): number {
  return Number.isFinite(delayMs) ? Math.min(Math.max(0, Math.ceil(delayMs)), limits.longestMs) : limits.localPollMs
}

/** Something may have changed: a message came, a receiver ended, or nobody said anything for a while. */
function createBell() {
  let wake: (() => void) | null = null
  let missed = false
  const wait = (ms: number, ring: boolean) =>
    new Promise<void>((resolve) => {
      const done = () => {
        clearTimeout(timer)
        wake = null
        resolve()
      }
      const timer = setTimeout(done, ms)
      if (ring) wake = done
    })
  return {
    ring() {
      if (wake === null) missed = true
      else wake()
    },
    async rung(ms: number): Promise<void> {
      if (!missed) await wait(ms, true)
      missed = false
    },
    /** Whatever rings meanwhile is heard afterwards. */
    quiet: (ms: number) => wait(ms, false),
  }
}
