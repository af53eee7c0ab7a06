import { defaults, limits } from '../../ledger/core/limits.ts'
import type { Page } from '../../ledger/store/port.ts'
import type { SqlTx } from '../../ledger/store/sql.ts'
import type { InboxDeadLetters, RedriveOptions } from '../inbox/operate.ts'
import type { IncomingMessage, Subscriber, Subscription } from '../inbox/port.ts'
import type { Receipt } from '../inbox/receipt.ts'
import { acknowledgementOf } from '../inbox/receipt.ts'
import type { Assembly } from './assemble.ts'
import { assemble } from './assemble.ts'
import type { Specs } from './definition.ts'
import type { Description } from './describe.ts'
import { describeMachine } from './describe.ts'
import type { SagaHistoryEntry } from './history.ts'
import type { Instance } from './instances.ts'
import { sagaDefaults } from './limits.ts'
import type { INITIAL } from './machine.ts'
import { topicsOf } from './machine.ts'
import type { SagaOptions } from './options.ts'
import { checkSagaOptions } from './options.ts'
import type { PendingView } from './pending.ts'
import type { Run } from './receive.ts'
import { effectOf, emitEntry } from './receive.ts'

/** An instance as people and tests see it. */
export interface SagaView<Data, State> extends Omit<Instance, 'data' | 'state'> {
  /** `initial` when it only holds events that wait for it to begin. */
  readonly state: State
  readonly data: Data
  /** Timeouts that are scheduled, and events that were deferred. */
  readonly pending: readonly PendingView[]
}

/** State machines that ignore duplicates: every message is handled once, on the latest state, or not at all. */
export interface Saga<Data, State extends string> {
  readonly name: string
  /** One delivery. Refusals, failures and conflicts are receipts; what is wrong with the saga itself is thrown. */
  handle(message: IncomingMessage): Promise<Receipt>
  /** Subscribes to all of its events and acknowledges by the receipts. Stopping the saga stops it too. */
  consume(subscriber: Subscriber, options?: { readonly concurrency?: number }): Promise<Subscription>
  get(id: string): Promise<SagaView<Data, State | typeof INITIAL> | null>
  /** In the order of their ids, without their data. */
  list(page?: { readonly limit?: number; readonly cursor?: string | null }): Promise<Page<Omit<Instance, 'data'>>>
  /** What came, what was done, what was ignored and why; oldest first. */
  history(id: string): Promise<readonly SagaHistoryEntry[]>
  describe(): Description
  /** Messages that were given up. Redriving runs them as `handle` would. */
  readonly deadLetters: Pick<InboxDeadLetters<SqlTx>, 'list' | 'count' | 'purge'> & {
    redrive(
      filter: Parameters<InboxDeadLetters<SqlTx>['redrive']>[0],
      options?: Omit<RedriveOptions<SqlTx>, 'effect'>,
    ): ReturnType<InboxDeadLetters<SqlTx>['redrive']>
  }
  /**
   * The background work on demand: for tests, and for applications that schedule it. Each returns the number of rows.
   */
  readonly upkeep: { deliver(): Promise<number>; sweep(): Promise<number> }
  /** Stops its subscriptions, waits for what is under way. The ledger stays open: it is yours. */
  stop(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Runs the instances of a saga: every event is handled once, with the messages and timeouts that it causes.
 *
 * @example
 * ```ts
 * import { createLedger } from 'onceonly'
 * import { createLocalBus } from 'onceonly/local'
 * import { createSaga, type SagaDefinition } from 'onceonly/saga'
 * import { sqliteStore } from 'onceonly/sqlite'
 *
 * export async function run(definition: SagaDefinition): Promise<void> {
 *   const store = sqliteStore('parcels.db')
 *   const saga = createSaga({ ledger: createLedger({ store }), definition })
 *   await saga.consume(createLocalBus({ store }))
 * }
 * ```
 */
export function createSaga<Data, Events extends Specs, State extends string, Terminal extends string>(
  options: SagaOptions<Data, Events, State, Terminal>,
): Saga<Data, State | Terminal> {
  checkSagaOptions(options)
  const assembly = assemble(options)
  const { machine, instances, history, pending, ready, handle, stop, sql } = assembly
  return {
    name: machine.name,
    handle,
    consume: (subscriber, { concurrency = sagaDefaults.concurrency } = {}) =>
      consume(assembly, subscriber, concurrency, options.inbox?.windowMs ?? defaults.inboxWindowMs),
    async get(id) {
      await ready()
      const { instance } = await instances.load(sql, id)
      if (instance === null) return null
      // The rows were written under this definition: their types are its types.
      return { ...(instance as Instance & { state: State; data: Data }), pending: await pending.read(id) }
    },
    async list({ limit = limits.pageRows, cursor = null } = {}) {
      await ready()
      return await instances.list({ limit: Math.min(Math.max(1, limit), limits.pageRows), cursor })
    },
    async history(id) {
      await ready()
      return await history.read(id)
    },
    describe: () => describeMachine(machine),
    deadLetters: deadLettersOf(assembly),
    upkeep: { deliver: assembly.deliver, sweep: assembly.sweep },
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

async function consume(
  { machine, emit, handle, subscriptions, inbox }: Assembly,
  subscriber: Subscriber,
  concurrency: number,
  windowMs: number,
): Promise<Subscription> {
  const { redeliveryHorizonMs } = subscriber
  if (windowMs < redeliveryHorizonMs) {
    emit({ kind: 'window_too_short', saga: machine.name, windowMs, redeliveryHorizonMs, subscriber: subscriber.name })
  }
  const topics = [...machine.events].flatMap(([event, spec]) => topicsOf(event, spec))
  const subscription = await subscriber.subscribe({ consumer: inbox.consumer, topics, concurrency }, async (message) =>
    acknowledgementOf(await handle(message)),
  )
  return subscriptions.keep(subscription)
}

function deadLettersOf(assembly: Assembly): Saga<unknown, string>['deadLetters'] {
  const { inbox, settings } = assembly
  const { list, count, purge } = inbox.deadLetters
  return {
    list,
    count,
    purge,
    async redrive(filter, redriveOptions = {}) {
      await assembly.ready()
      const runs = new Map<string, Run>()
      const redriven = await inbox.deadLetters.redrive(filter, {
        ...redriveOptions,
        effect: async (body, tools) => {
          const run: Run = { entry: null, conflict: null }
          runs.set(tools.message.id, run)
          await effectOf(assembly, run, settings.laterMs)(body, tools)
        },
      })
      for (const { id, result } of redriven) {
        if (result.kind === 'ran' && result.receipt.kind === 'handled') emitEntry(assembly, runs.get(id)?.entry ?? null)
      }
      return redriven
    },
  }
}
