import { limits } from '../../ledger/core/limits.ts'
import { checkOptions } from '../../ledger/core/option-names.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { sqlStoreOf } from '../../ledger/sql-store.ts'
import type { SqlTx } from '../../ledger/store/sql.ts'
import { createWingTables } from '../../ledger/store/wing-tables.ts'
import { createListeners } from '../../runtime/listeners.ts'
import { startLoop } from '../../runtime/loop.ts'
import { createRuntime } from '../../runtime/runtime.ts'
import type { ConsumeOptions } from './consume.ts'
import { consume } from './consume.ts'
import { createDeadLetterBox } from './dead-letters.ts'
import { createFailures } from './failures.ts'
import type { InboxDeadLetters, MessageExplanation } from './operate.ts'
import { createDeadLetters, explain } from './operate.ts'
import type { InboxOptions } from './options.ts'
import { inboxOptions, settingsOf } from './options.ts'
import { createOrder } from './order.ts'
import type { Parts } from './parts.ts'
import { createSubscriptions, type IncomingMessage, type Subscriber, type Subscription } from './port.ts'
import type { Receipt } from './receipt.ts'
import { receive } from './receive.ts'
import type { InboxEffect } from './settle.ts'
import { INBOX_ROOM, inboxMigrations } from './tables.ts'

/**
 * Consumes at-least-once messages effectively once. A message is an identity of the ledger: its record, what its effect
 * writes and the messages it sends commit in one transaction, or not at all.
 */
export interface Inbox<Tx> {
  readonly consumer: string
  /** One delivery. Failures of the effect are receipts; what is wrong with the inbox itself is thrown. */
  // oxlint-disable-next-line typescript/no-explicit-any -- without a body type any body is accepted.
  receive<B = any>(message: IncomingMessage, effect: InboxEffect<Tx, B>): Promise<Receipt>
  /** Subscribes to a broker and acknowledges by the receipts. Stopping the inbox stops it too. */
  // oxlint-disable-next-line typescript/no-explicit-any -- without a body type any body is accepted.
  consume<B = any>(subscriber: Subscriber, options: ConsumeOptions, effect: InboxEffect<Tx, B>): Promise<Subscription>
  explain(messageId: string): Promise<MessageExplanation>
  readonly deadLetters: InboxDeadLetters<Tx>
  /** Removes what is past its end: for tests, and for applications that schedule it themselves. */
  sweep(): Promise<number>
  /** Stops its subscriptions, then its upkeep. The ledger stays open: it is yours. */
  stop(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Handles every message of an at-least-once broker once per consumer, in the transaction of what it causes.
 *
 * @example
 * ```ts
 * import { createLedger } from 'onceonly'
 * import { createInbox } from 'onceonly/inbox'
 * import { createLocalBus } from 'onceonly/local'
 * import { sqliteStore } from 'onceonly/sqlite'
 *
 * const store = sqliteStore('parcels.db')
 * const inbox = createInbox({ ledger: createLedger({ store }), consumer: 'shipping' })
 * await inbox.consume<{ id: string }>(createLocalBus({ store }), { topics: ['order.placed'] }, async ({ id }, { tx }) => {
 *   await tx.query('insert into parcels (id) values (?)', [id])
 * })
 * ```
 */
export function createInbox<Tx>(given: InboxOptions<Tx>): Inbox<Tx> {
  checkOptions('createInbox', given, inboxOptions)
  // Inside, every transaction is just SQL; what more the store's own type can do matters to the effects only.
  const parts = partsOf(given as unknown as InboxOptions<SqlTx>)
  const subscriptions = createSubscriptions()
  const consuming = new Map<string, InboxEffect<SqlTx>>()
  const sweep = async () => {
    await parts.ready()
    let removed = 0
    for (let step = 0; step < limits.sweepSteps; step++) {
      const gone = await parts.failures.sweep()
      removed += gone
      if (gone < limits.sweepRows) break
    }
    return removed
  }
  const upkeep =
    given.background === false
      ? null
      : startLoop({
          runtime: parts.runtime,
          everyMs: () => limits.sweepEveryMs,
          round: async () => void (await sweep()),
          failed: (error) =>
            parts.emit({ kind: 'background_failed', consumer: parts.consumer, what: 'inbox sweep', error }),
        })

  let stopping: Promise<void> | null = null
  async function end(): Promise<void> {
    forget()
    await subscriptions.stop()
    await upkeep?.stop()
  }
  const stop = () => (stopping ??= end())
  const forget = given.ledger.defer(stop)

  return {
    consumer: parts.consumer,
    receive: (message, effect) => receive(parts, message, effect as InboxEffect<SqlTx>, null),
    async consume(subscriber, options, given) {
      const effect = given as InboxEffect<SqlTx>
      const subscription = await consume(parts, subscriber, options, (message) => receive(parts, message, effect, null))
      for (const topic of options.topics) consuming.set(topic, effect)
      return subscriptions.keep({
        stop() {
          for (const topic of options.topics) if (consuming.get(topic) === effect) consuming.delete(topic)
          return subscription.stop()
        },
      })
    },
    explain: (messageId) => explain(parts, messageId),
    deadLetters: createDeadLetters(parts, (topic) => consuming.get(topic)) as InboxDeadLetters<Tx>,
    sweep,
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

function partsOf(options: InboxOptions<SqlTx>): Parts {
  const settings = settingsOf(options)
  const { consumer, ledger, runtime = createRuntime() } = options
  const store = sqlStoreOf<SqlTx>('createInbox', ledger)
  const { windowMs } = settings
  return {
    consumer,
    options,
    settings,
    ledger,
    store,
    runtime,
    messages: declare(ledger, `inbox.${consumer}`, windowMs),
    intents: declare(ledger, `inbox.${consumer}.intent`, windowMs),
    failures: createFailures(store.sql, consumer, windowMs),
    letters: createDeadLetterBox(store.sql, consumer),
    order: createOrder(store.sql, consumer),
    emit: createListeners(options.on).emit,
    ready: createWingTables(store, INBOX_ROOM, inboxMigrations).prepare,
    now: () => store.clock.now({ timeoutMs: limits.storeCallMs }),
    alone: createAlone(),
  }
}

function declare<I>(ledger: Ledger<SqlTx>, name: string, windowMs: number) {
  return ledger.operation<I>({ name, effect: 'transaction', retainMs: windowMs })
}

function createAlone(): Parts['alone'] {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const mine = last.then(work)
    last = mine.catch(() => {})
    return mine
  }
}
