import { OnceError } from '../../../ledger/core/errors.ts'
import { defaults, limits } from '../../../ledger/core/limits.ts'
import { checkOptions, wholeOption } from '../../../ledger/core/option-names.ts'
import type { SqlStore } from '../../../ledger/store/port.ts'
import { createWingTables } from '../../../ledger/store/wing-tables.ts'
import { createListeners } from '../../../runtime/listeners.ts'
import { startLoop } from '../../../runtime/loop.ts'
import { createRuntime, type Runtime } from '../../../runtime/runtime.ts'
import { createSubscriptions, type Subscriber } from '../../inbox/port.ts'
import type { Publisher } from '../../outbox/port.ts'
import { checkSubscription, reasonOf } from '../options.ts'
import { publish } from './publish.ts'
import { createQueues } from './queues.ts'
import { startSubscription } from './subscription.ts'
import { LOCAL_ROOM, localTables } from './tables.ts'

export interface LocalBusOptions {
  /** Processes that share this store share the queues. */
  readonly store: SqlStore
  /** How long a delivery stays with a silent receiver, in milliseconds; renewed while it runs. @default 30 seconds */
  readonly leaseMs?: number
  /** The delay after which a receiver that threw gets the message again, in milliseconds. @default 1 second */
  readonly retryMs?: number
  /** What no receiver acknowledged within this, in milliseconds, is dropped, and reported. @default 7 days */
  readonly keepMs?: number
  /** Called with failures, and with what expired. @default none */
  readonly on?: (event: LocalBusEvent) => void
  /** Time, randomness and scheduling; tests give their own. @default the system's */
  readonly runtime?: Runtime
}

const localBusOptions = {
  store: true,
  leaseMs: true,
  retryMs: true,
  keepMs: true,
  on: true,
  runtime: true,
} satisfies Record<keyof LocalBusOptions, true>

export type LocalBusEvent =
  /** A receiver threw, or the store did not answer; both are tried again. */
  | { readonly kind: 'failed'; readonly error: unknown }
  /** The store answers again; so many rounds of renewals had failed, of which only the first was reported. */
  | { readonly kind: 'recovered'; readonly failures: number }
  /** Messages that waited longer than `keepMs`. */
  | { readonly kind: 'expired'; readonly count: number }

export interface LocalBus extends Publisher, Subscriber, AsyncDisposable {
  /** Ends every subscription in order. The store stays open: it is yours. */
  stop(): Promise<void>
}

/**
 * A broker without a server: durable queues in the store, shared by every process on it. Really at least once: what was
 * not acknowledged comes again, after a restart, after a crash, and after a lease without a sign of life.
 *
 * @example
 * ```ts
 * import { createLedger } from 'onceonly'
 * import { createInbox } from 'onceonly/inbox'
 * import { createLocalBus } from 'onceonly/local'
 * import { createRelay } from 'onceonly/outbox'
 * import { sqliteStore } from 'onceonly/sqlite'
 *
 * const store = sqliteStore('shop.db')
 * const once = createLedger({ store })
 * const bus = createLocalBus({ store })
 * createRelay({ ledger: once, publisher: bus })
 * const inbox = createInbox({ ledger: once, consumer: 'shipping' })
 * await inbox.consume<{ id: string }>(bus, { topics: ['order.placed'] }, async ({ id }) => console.log(id))
 * ```
 */
export function createLocalBus(options: LocalBusOptions): LocalBus {
  checkOptions('createLocalBus', options, localBusOptions)
  const { store, leaseMs = defaults.localLeaseMs, retryMs = defaults.localRetryMs } = options
  const { keepMs = defaults.localKeepMs, runtime = createRuntime() } = options
  for (const [name, ms] of Object.entries({ leaseMs, retryMs, keepMs })) {
    wholeOption('Local bus', name, ms, 1, limits.longestMs)
  }
  if (store?.sql === undefined) throw new OnceError('bad_option', 'createLocalBus needs a `store` that speaks SQL.')
  const queues = createQueues(store, runtime.newId(), leaseMs)
  const subscriptions = createSubscriptions()
  const { emit } = createListeners(options.on)
  const { prepare } = createWingTables(store, LOCAL_ROOM, localTables)
  let stopped = false
  const failed = (error: unknown) => emit({ kind: 'failed', error })
  const recovered = (failures: number) => emit({ kind: 'recovered', failures })

  async function sweep(): Promise<void> {
    await prepare()
    const count = await queues.expire(keepMs)
    if (count > 0) emit({ kind: 'expired', count })
  }

  const sweeping = startLoop({ runtime, everyMs: () => limits.sweepEveryMs, round: sweep, failed })

  async function stop(): Promise<void> {
    stopped = true
    await Promise.all([sweeping.stop(), subscriptions.stop()])
  }

  return {
    name: 'local',
    redeliveryHorizonMs: keepMs,
    async publish(messages, call) {
      try {
        await prepare()
      } catch (error) {
        return messages.map(() => ({ kind: 'unavailable', reason: reasonOf(error) }))
      }
      return publish(queues, messages, call)
    },
    async subscribe(given, receive) {
      if (stopped) throw new OnceError('stopped', 'The local bus was stopped.', { next: 'Create a new one.' })
      checkSubscription(given)
      await prepare()
      const started = await startSubscription(
        { queues, sql: store.sql, runtime, leaseMs, retryMs, failed, recovered },
        given,
        receive,
      )
      return subscriptions.keep(started)
    },
    stop,
    [Symbol.asyncDispose]: stop,
  }
}
