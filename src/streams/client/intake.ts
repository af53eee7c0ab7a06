import { countOf } from '../parts/count.ts'
import type { DeliveryMode } from '../parts/delivery.ts'
import { Delivery } from '../parts/delivery.ts'
import { covers, coversPlace, furthest } from '../protocol/position.ts'
import type {
  Delivered,
  Entry,
  LogPlace,
  MessageIdentity,
  OrderFrame,
  Position,
  ResetFrame,
} from '../protocol/protocol.ts'
import { identityText } from '../protocol/protocol.ts'
import type { SessionBounds } from '../session-limits.ts'
import type { ClientPosition, ClientStorage } from './ports.ts'
import { Received } from './received.ts'
import type { ClientRuntime } from './runtime.ts'

/**
 * What an application does with what it receives. Calls come one after the other, in an order in which causes come
 * first.
 */
export interface StreamReceiver {
  /** Throwing means "not done": it is called again with the same message, and nothing overtakes it. */
  message(message: Entry): void | Promise<void>
  /** A message that was already shown also stands in a second log; for receivers that track causality. */
  copy?(copy: Omit<Delivered, 'kind'>): void
  /** A message has its final place. It may have been shown already, or be shown later. */
  ordered?(identity: MessageIdentity, place: number): void
  /**
   * The region does not go back to where this client was. Start over from the snapshot; where it is null, messages are
   * missing here, what was shown stays, and everything that the room still has follows.
   */
  reset?(reset: { readonly why: string; readonly snapshot: unknown }): void | Promise<void>
}

/** What came in, from the connection to the application's hands. */
export interface Intake {
  /** What has arrived: where a resume in this process continues. */
  readonly position: ClientPosition
  /** What the application was shown: the causes of whatever it sends now. */
  readonly shown: Position
  /** Only a no is certain: what came before a restart, a reset or the head of the room is not remembered. */
  mayHaveCome(identity: MessageIdentity): boolean
  /** `taken` is called once for each entry, when it is done with. */
  deliver(entries: readonly Delivered[], taken: () => void): 'taken' | 'jump'
  order(frame: OrderFrame): 'taken' | 'jump'
  reset(frame: ResetFrame): void
  /** Begins at a head without having seen what was before it. */
  begin(position: ClientPosition): void
  /** When the application has done everything that arrived. */
  idle(): Promise<void>
  stop(): void
}

export interface IntakeOptions {
  readonly receiver: StreamReceiver
  readonly mode: DeliveryMode
  readonly storage: ClientStorage
  readonly restored: ClientPosition
  /** Everything comes again; what is restored is only what was seen. */
  readonly replay: boolean
  readonly runtime: ClientRuntime
  readonly bounds: SessionBounds
  problem(error: unknown): void
}

export function createIntake(options: IntakeOptions): Intake {
  const { receiver, storage, runtime, bounds, problem } = options
  const delivery = new Delivery(options.mode, storage)
  const received = new Received(bounds)
  let arrived: Position = options.replay ? {} : options.restored.logs
  let ordered = options.replay ? 0 : options.restored.ordered
  // What was shown stays shown: it is a cause of everything that this client sends from now on.
  let shown: Position = options.restored.logs
  /** Of what is done with: this is what survives a restart. */
  let done: ClientPosition = options.restored
  /** Everything that has ever come to this client is in `received`, unless that forgot it. */
  let complete = Object.keys(options.restored.logs).length === 0
  let stopped = false
  let queue: Promise<void> = Promise.resolve()

  function enqueue(work: () => void | Promise<void>): void {
    queue = queue.then(() => (stopped ? undefined : work())).catch(problem)
  }

  /** After the position advances nothing is delivered again, so the write is retried until it succeeds. */
  async function insist(work: () => Promise<unknown>): Promise<void> {
    for (let failures = 0; !stopped; failures++) {
      try {
        await work()
        return
      } catch (error) {
        problem(error)
        if (options.mode === 'at-most-once') return
        const waitMs = Math.min(bounds.storeRetryCapMs, bounds.storeRetryBaseMs * 2 ** failures)
        await new Promise<void>((resolve) => void runtime.setTimer(waitMs, resolve, true))
      }
    }
  }

  async function show(entry: Entry, taken: () => void): Promise<void> {
    shown = reached(shown, entry)
    const after = { ...done, logs: reached(done.logs, entry) }
    await insist(() =>
      delivery.deliver(identityText(entry), after, async () => {
        await receiver.message(entry)
      }),
    )
    done = { ...after, ordered: done.ordered }
    taken()
  }

  /** Only the next entry of a log is taken, and only after its causes. Whatever else comes means: replay. */
  function take(entry: Delivered, taken: () => void): 'taken' | 'jump' {
    const have = countOf(arrived, entry.log)
    if (entry.n <= have) {
      taken()
      return 'taken'
    }
    const after = entry.kind === 'message' ? entry.after : null
    if (entry.n !== have + 1 || !covers(arrived, entry.seen) || !coversPlace(arrived, after)) return 'jump'
    arrived = { ...arrived, [entry.log]: entry.n }
    // A region marks the copies that it knows of; one that another region took for the first is known only here.
    if (entry.kind === 'message' && received.first(entry)) {
      enqueue(() => show(entry, taken))
    } else enqueue(() => skip(entry, taken))
    return 'taken'
  }

  function skip(entry: Delivered, taken: () => void): void {
    receiver.copy?.(entry)
    shown = reached(shown, entry)
    done = { ...done, logs: reached(done.logs, entry) }
    taken()
  }

  return {
    get position() {
      return { logs: arrived, ordered }
    },
    get shown() {
      return shown
    },
    mayHaveCome: (identity) => !complete || received.forgot || received.has(identity),
    deliver(entries, taken) {
      for (const [index, entry] of entries.entries()) {
        if (take(entry, taken) === 'taken') continue
        // They count for the flow, although they will come again.
        for (let rest = index; rest < entries.length; rest++) taken()
        return 'jump'
      }
      return 'taken'
    },
    order({ after, from, identities }) {
      if (after > ordered) return 'jump'
      for (const [index, identity] of identities.entries()) {
        const g = from + index
        if (g <= ordered) continue
        ordered = g
        enqueue(() => {
          receiver.ordered?.(identity, g)
          done = { ...done, ordered: Math.max(done.ordered, g) }
        })
      }
      return 'taken'
    },
    reset({ why, position, ordered: from, snapshot }) {
      complete = false
      // A snapshot replaces what was shown. Without one that stays, and only what is gone is passed over.
      const after =
        snapshot === null
          ? { logs: furthest(arrived, position), ordered: Math.max(ordered, from) }
          : { logs: position, ordered: from }
      arrived = after.logs
      ordered = after.ordered
      enqueue(async () => {
        // What was seen before still is a cause, also where the region does not know of it yet.
        shown = furthest(shown, after.logs)
        await insist(async () => receiver.reset?.({ why, snapshot }))
        done =
          snapshot === null
            ? { logs: furthest(done.logs, after.logs), ordered: Math.max(done.ordered, after.ordered) }
            : after
        await insist(() => storage.advance(done))
      })
    },
    begin(position) {
      complete = false
      arrived = position.logs
      ordered = position.ordered
      shown = arrived
      done = position
    },
    idle: () => queue,
    stop() {
      stopped = true
    },
  }
}

/** A position never goes back, also where entries come again. */
function reached(position: Position, { log, n }: LogPlace): Position {
  return n > countOf(position, log) ? { ...position, [log]: n } : position
}
