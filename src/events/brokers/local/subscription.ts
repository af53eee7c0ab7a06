import { limits } from '../../../ledger/core/limits.ts'
import type { HeldLease } from '../../../ledger/store/held-leases.ts'
import { createHeldRows } from '../../../ledger/store/held-rows.ts'
import type { SqlSeam } from '../../../ledger/store/sql.ts'
import { createBell } from '../../../runtime/bell.ts'
import type { Runtime } from '../../../runtime/runtime.ts'
import type { Receive, SubscribeOptions, Subscription } from '../../inbox/port.ts'
import type { Delivery, Queues } from './queues.ts'
import { LOCAL_ROOM } from './tables.ts'

export interface SubscriptionParts {
  readonly queues: Queues
  readonly sql: SqlSeam
  readonly runtime: Runtime
  readonly leaseMs: number
  readonly retryMs: number
  failed(error: unknown): void
  recovered(failures: number): void
}

/** The result of a delivery, until it is written. */
type Answer = { readonly kind: 'remove' } | { readonly kind: 'put_off'; readonly delayMs: number }

/** One receiver of a consumer group. It takes only what it hands over at once, so that a crash loses no more turns. */
export async function startSubscription(
  parts: SubscriptionParts,
  { consumer, topics, concurrency }: SubscribeOptions,
  receive: Receive,
): Promise<Subscription> {
  const { queues, sql, runtime, leaseMs, retryMs, failed, recovered } = parts
  const underWay = new Set<Delivery>()
  const answers = new Map<Delivery, Answer>()
  const bell = createBell(runtime)
  const held = createHeldRows<'seq', Delivery>({ runtime, leases: queues.leases, leaseMs, failed, recovered })
  let stopped = false
  /** The last look found nothing. */
  let idle = false
  /** After how long something is due, as far as the last look could tell. */
  let dueMs: number | null = 0

  await queues.bind(consumer, topics)
  const watch = sql.listen(LOCAL_ROOM, () => bell.ring())
  await watch.ready

  /** A delivery whose lease ended comes again, and what this receiver answers to it changes nothing. */
  async function handle(delivery: Delivery, lease: HeldLease<true>): Promise<void> {
    let answer: Answer
    try {
      const received = await receive(delivery.message)
      answer = received.kind === 'done' ? { kind: 'remove' } : { kind: 'put_off', delayMs: wholeMs(received.delayMs) }
    } catch (error) {
      answer = { kind: 'put_off', delayMs: retryMs }
      failed(error)
    }
    lease.letGo()
    answers.set(delivery, answer)
    bell.ring()
  }

  /** Together in few statements; a place is free again only when its answer is durable. */
  async function writeAnswers(): Promise<void> {
    const byDelay = Map.groupBy(answers, ([, answer]) => (answer.kind === 'remove' ? -1 : answer.delayMs))
    for (const [delayMs, group] of byDelay) {
      const deliveries = group.map(([delivery]) => delivery)
      await (delayMs < 0 ? queues.remove(deliveries) : queues.putOff(deliveries, delayMs))
      for (const delivery of deliveries) {
        answers.delete(delivery)
        underWay.delete(delivery)
      }
    }
  }

  async function takeMore(): Promise<boolean> {
    const free = concurrency - underWay.size
    if (stopped || free <= 0) return false
    if (idle) {
      dueMs = await queues.dueIn(consumer, topics)
      if (dueMs === null || dueMs > 0) return false
    }
    const sentAtMs = held.nowMs()
    const taken = await queues.take(consumer, topics, free)
    // A first time without anything to take is followed by a look at what is due later.
    const isFirst = !idle
    idle = taken.length === 0
    if (idle && isFirst) return await takeMore()
    if (stopped) {
      await queues.giveBack(taken)
      return false
    }
    for (const delivery of taken) {
      underWay.add(delivery)
      void handle(delivery, held.hold(delivery, sentAtMs))
    }
    return taken.length > 0
  }

  /** Until something is due. What cannot be taken although it is due, another receiver is just taking. */
  function waitMs(): number {
    if (dueMs === null) return limits.safetyPollMs
    return dueMs > 0 ? Math.min(dueMs + 1, limits.safetyPollMs) : limits.duePollMs
  }

  async function work(): Promise<void> {
    while (!stopped || underWay.size > 0) {
      let more = false
      try {
        await writeAnswers()
        more = await takeMore()
      } catch (error) {
        // The store is down: delivered messages stay leased until their lease ends, and answers are written later.
        failed(error)
        if (stopped && underWay.size === answers.size) return
        await bell.quiet(retryMs)
      }
      if (!more && answers.size === 0 && !(stopped && underWay.size === 0)) await bell.rung(waitMs())
    }
  }

  const life = work()
  return {
    async stop() {
      stopped = true
      watch.stop()
      bell.ring()
      await life
    },
  }
}

function wholeMs(delayMs: number): number {
  return Number.isFinite(delayMs) ? Math.min(Math.max(0, Math.ceil(delayMs)), limits.longestMs) : limits.duePollMs
}
