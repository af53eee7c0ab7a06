import { isOnceError } from '../../ledger/core/errors.ts'
import { limits } from '../../ledger/core/limits.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { sqlStoreOf } from '../../ledger/sql-store.ts'
import { checkSameOrm } from '../../ledger/store/foreign.ts'
import type { SqlSeam, SqlTx } from '../../ledger/store/sql.ts'
import { createWingTables } from '../../ledger/store/wing-tables.ts'
import { startDueLoop } from '../../runtime/due-loop.ts'
import { createListeners } from '../../runtime/listeners.ts'
import { startLoop } from '../../runtime/loop.ts'
import { createRuntime } from '../../runtime/runtime.ts'
import { createInbox } from '../inbox/inbox.ts'
import { createSubscriptions, type IncomingMessage, type Subscriptions } from '../inbox/port.ts'
import type { Receipt } from '../inbox/receipt.ts'
import type { Specs } from './definition.ts'
import { createDeliverer } from './deliver.ts'
import { createHistory } from './history.ts'
import { createInstances } from './instances.ts'
import { sagaDefaults, sagaLimits } from './limits.ts'
import { machineOf } from './machine.ts'
import type { SagaOptions } from './options.ts'
import { settingsOf } from './options.ts'
import { createPartition } from './partition.ts'
import { createPending } from './pending.ts'
import type { ReceiveParts } from './receive.ts'
import { receive } from './receive.ts'
import { createRouter } from './route.ts'
import { createSweeper } from './sweep.ts'
import { SAGA_ROOM, sagaMigrations } from './tables.ts'

/** Everything that one saga is made of, put together. */
export interface Assembly extends ReceiveParts {
  readonly sql: SqlSeam
  readonly subscriptions: Subscriptions
  ready(): Promise<void>
  handle(message: IncomingMessage): Promise<Receipt>
  deliver(): Promise<number>
  sweep(): Promise<number>
  stop(): Promise<void>
}

export function assemble<Data, Events extends Specs, State extends string, Terminal extends string>(
  options: SagaOptions<Data, Events, State, Terminal>,
): Assembly {
  const machine = machineOf(options.definition)
  const { runtime = createRuntime(), background = true } = options
  const ledger = options.ledger as Ledger<SqlTx>
  const store = sqlStoreOf<SqlTx>('createSaga', ledger)
  const { sql } = store
  checkSameOrm(`the saga ${machine.name}`, ledger.orm, machine.transactions)
  const settings = settingsOf(options)
  const { emit } = createListeners(options.on)
  const inbox = createInbox({
    ...options.inbox,
    maxFailures: options.inbox?.maxFailures ?? sagaDefaults.maxFailures,
    ledger,
    runtime,
    background,
    consumer: `saga.${machine.name}`,
  })
  const { prepare: ready } = createWingTables(store, SAGA_ROOM, sagaMigrations)
  const parts: ReceiveParts = {
    machine,
    ledger,
    runtime,
    settings,
    inbox,
    emit,
    route: createRouter(machine),
    instances: createInstances(sql, machine),
    pending: createPending(sql, machine.name, runtime.newId()),
    history: createHistory(sql, machine.name),
    moved: () => due?.soon(),
  }
  const handle = createHandle(parts, ready, options.partition ?? true)
  const sweeper = createSweeper(machine, store, emit)
  const failed = (what: string) => (error: unknown) =>
    emit({ kind: 'background_failed', saga: machine.name, what, error })
  const deliverer = createDeliverer({
    machine,
    pending: parts.pending,
    runtime,
    handle,
    failed: failed('deliver'),
    recovered: (failures) => emit({ kind: 'background_recovered', saga: machine.name, what: 'deliver', failures }),
  })
  /** As the last look found it. */
  let dueMs: number | null = null

  /**
   * Only a look while nothing is due: that is what it does almost always. A delivery may make more due; a saga that never
   * rests must not keep a round running forever.
   */
  async function deliver(): Promise<number> {
    let delivered = 0
    await ready()
    for (let rounds = 0; rounds < sagaLimits.dueRounds; rounds++) {
      dueMs = await parts.pending.dueIn()
      if (dueMs === null || dueMs > 0) break
      const taken = await deliverer.round()
      if (taken === 0) break
      delivered += taken
    }
    return delivered
  }

  async function sweep(): Promise<number> {
    await ready()
    return await sweeper.round()
  }

  const due = background
    ? startDueLoop({
        runtime,
        mostMs: settings.dueEveryMs,
        leastMs: Math.min(settings.dueEveryMs, limits.duePollMs),
        async round() {
          await deliver()
          return dueMs
        },
        failed: failed('deliver'),
      })
    : null
  const watch = due === null ? null : sql.listen(SAGA_ROOM, due.ring)
  const loops = background
    ? [
        startLoop({
          runtime,
          everyMs: () => limits.sweepEveryMs,
          round: async () => void (await sweep()),
          failed: failed('sweep'),
        }),
      ]
    : []
  const subscriptions = createSubscriptions()
  async function end(): Promise<void> {
    forget()
    await subscriptions.stop()
    watch?.stop()
    await Promise.all([due?.stop(), ...loops.map((loop) => loop.stop())])
    await inbox.stop()
  }
  let ending: Promise<void> | null = null
  const stop = () => (ending ??= end())
  const forget = ledger.defer(stop)
  return { ...parts, sql, subscriptions, ready, handle, deliver, sweep, stop }
}

function createHandle(parts: ReceiveParts, ready: () => Promise<void>, partitioned: boolean) {
  const partition = createPartition()
  return async (message: IncomingMessage): Promise<Receipt> => {
    try {
      await ready()
    } catch (error) {
      // A database that is down says nothing about the message.
      if (!isOnceError(error) || !error.retryable) throw error
      return { kind: 'later', id: message.id, delayMs: parts.settings.laterMs, counted: false, error }
    }
    const run = () => receive(parts, message)
    const routed = parts.route(message)
    return routed.kind === 'arrival' && partitioned ? await partition.run(routed.arrival.id, run) : await run()
  }
}
