import { defaults, limits } from '../../ledger/core/limits.ts'
import { badOption, checkOptions, wholeOption } from '../../ledger/core/option-names.ts'
import type { Backoff } from '../../ledger/core/retry.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { sqlStoreOf } from '../../ledger/sql-store.ts'
import type { SqlStore } from '../../ledger/store/port.ts'
import type { Watch } from '../../ledger/store/watch.ts'
import { createBell } from '../../runtime/bell.ts'
import { createListeners } from '../../runtime/listeners.ts'
import type { Loop } from '../../runtime/loop.ts'
import { startLoop } from '../../runtime/loop.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { createRuntime } from '../../runtime/runtime.ts'
import { partitionTopic } from './add.ts'
import type { RelayEvent, RelayListener } from './events.ts'
import type { Lane } from './lane.ts'
import { startLane } from './lane.ts'
import type { Balance } from './leases.ts'
import { createLeases } from './leases.ts'
import type { RelayParts, RelaySettings } from './parts.ts'
import type { Publisher } from './port.ts'
import { createRows } from './rows.ts'
import { createSweeper } from './sweep.ts'
import { outboxTablesOf } from './tables.ts'

export interface RelayOptions {
  /** On the store that the outbox writes to. Stopping it stops the relay. */
  readonly ledger: Ledger<unknown>
  /** Where to publish: a broker's adapter. */
  readonly publisher: Publisher
  /** How long another relay waits before it takes over what this one held. @default 15_000 */
  readonly leaseMs?: number
  /**
   * How long the publisher may take for a batch: 5 s, or half of a shorter lease. Then the batch counts as not confirmed,
   * is reported as `unavailable` and published again. `stop` waits no longer than this for it.
   * @default 5_000
   */
  readonly publishMs?: number
  /** How often the broker may refuse a message before it is parked, and its key with it. @default 20 */
  readonly maxAttempts?: number
  /** Pauses between attempts to publish a refused message, in milliseconds. @default { baseMs: 250, capMs: 60_000 } */
  readonly backoff?: Backoff
  /** How long ids that callers gave are remembered. @default 7 days */
  readonly idMs?: number
  /**
   * Forgets the counter of a key that was not used for this long; left out, never. Its numbers begin at 1 again then, so
   * only where no consumer remembers them any longer than this: an inbox with `ordered` does.
   * @default never
   */
  readonly forgetKeysMs?: number
  /** Called with every event of the relay: published batches, refusals, and an unavailable broker. @default none */
  readonly on?: RelayListener
  /** Time, randomness and scheduling; tests give their own. @default the system's */
  readonly runtime?: Runtime
}

/** Publishes what committed: at least once, a key's messages in order. Any number of them may share one store. */
export interface Relay {
  /** Names it among the relays of the store. */
  readonly id: string
  on(listener: RelayListener): () => void
  /** Removes what is past its end, on demand. */
  sweep(): Promise<number>
  /**
   * Waits for the batches under way, at most `publishMs`, then lets others have its partitions at once. The ledger stays
   * open: it is yours.
   */
  stop(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Publishes what outboxes of the store have committed, in the order of each key. Any number of relays share the work.
 *
 * @example
 * ```ts
 * import { createLedger } from 'onceonly'
 * import { createLocalBus } from 'onceonly/local'
 * import { createRelay } from 'onceonly/outbox'
 * import { sqliteStore } from 'onceonly/sqlite'
 *
 * const store = sqliteStore('orders.db')
 * const once = createLedger({ store })
 * createRelay({ ledger: once, publisher: createLocalBus({ store }) })
 * // It stops with its ledger.
 * await once.stop()
 * ```
 */
export function createRelay(options: RelayOptions): Relay {
  checkOptions('createRelay', options, relayOptions)
  const { ledger, runtime = createRuntime() } = options
  const store = sqlStoreOf('createRelay', ledger)
  const settings = settingsOf(options, store)
  const tables = outboxTablesOf(store)
  const id = runtime.newId()
  const { emit, on } = createListeners<RelayEvent>(options.on)
  const parts: RelayParts = {
    settings,
    runtime,
    leases: createLeases(store.sql, {
      runtime,
      relay: id,
      leaseMs: settings.leaseMs,
      lost: (partitions) => emit({ kind: 'lease_lost', partitions }),
    }),
    rows: createRows(store),
    emit,
  }
  const sweeper = createSweeper(store.sql, parts)
  const running = run(parts, store, tables.prepare)
  const upkeep: Loop = startLoop({
    runtime,
    everyMs: () => limits.sweepEveryMs,
    round: async () => void (await sweep()),
    failed: (error) => parts.emit({ kind: 'background_failed', what: 'outbox sweep', error }),
  })

  async function sweep(): Promise<number> {
    await tables.prepare()
    return await sweeper.round()
  }

  let stopping: Promise<void> | null = null
  const stop = () => {
    forget()
    return (stopping ??= Promise.all([upkeep.stop(), running.stop()]).then(() => undefined))
  }
  const forget = ledger.defer(stop)
  return {
    id,
    on,
    sweep,
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

/** The life of a relay: rounds of leases, and lanes that publish what is leased. */
function run(parts: RelayParts, store: SqlStore, prepare: () => Promise<void>): { stop(): Promise<void> } {
  const { leases, runtime, settings, emit } = parts
  const bell = createBell(runtime)
  const lanes: Lane[] = []
  const watches: Watch[] = []
  let stopped = false

  function start(): void {
    const laneOf = (partition: number) => partition % limits.relayLanes
    for (let n = 0; n < limits.relayLanes; n++) {
      lanes.push(startLane(parts, (partition) => laneOf(partition) === n, createBell(runtime)))
    }
    for (let partition = 0; partition < limits.outboxPartitions; partition++) {
      const lane = lanes[laneOf(partition)]
      watches.push(store.sql.listen(partitionTopic(partition), () => lane?.bell.ring()))
    }
  }

  async function settle({ relays, surplus, changed }: Balance): Promise<void> {
    if (surplus.length > 0) {
      // Other relays begin with them only after our last batch has ended.
      await Promise.all(lanes.map((lane) => lane.turnOver()))
      await leases.giveBack(surplus)
    }
    if (!changed) return
    emit({ kind: 'balanced', partitions: leases.current(0).length, relays })
    for (const { bell } of lanes) bell.ring()
  }

  async function live(): Promise<void> {
    const everyMs = settings.leaseMs * limits.heartbeatShare
    let failures = 0
    while (!stopped) {
      const begunAtMs = runtime.monotonicMs()
      let waitMs = everyMs
      try {
        await prepare()
        const balance = await leases.round()
        if (failures > 0) emit({ kind: 'background_recovered', what: 'relay leases', failures })
        failures = 0
        if (lanes.length === 0) start()
        await settle(balance)
        // The lease is counted from before the round.
        waitMs = Math.max(0, everyMs - (runtime.monotonicMs() - begunAtMs))
        if (balance.hungry) waitMs = Math.min(everyMs, limits.relayHungryMs)
      } catch (error) {
        failures += 1
        if (failures === 1) emit({ kind: 'background_failed', what: 'relay leases', error })
        waitMs = Math.min(everyMs, limits.relayHungryMs)
      }
      if (!stopped) await bell.rung(waitMs)
    }
  }

  const life = live()
  return {
    async stop() {
      stopped = true
      bell.end()
      await life
      for (const watch of watches) watch.stop()
      await Promise.all(lanes.map((lane) => lane.stop()))
      // What cannot be given back now ends with its lease.
      await leases.leave().catch((error: unknown) => emit({ kind: 'background_failed', what: 'relay leases', error }))
    },
  }
}

const relayOptions = {
  ledger: true,
  publisher: true,
  leaseMs: true,
  publishMs: true,
  maxAttempts: true,
  backoff: true,
  idMs: true,
  forgetKeysMs: true,
  on: true,
  runtime: true,
} satisfies Record<keyof RelayOptions, true>

const BACKOFF: Backoff = { baseMs: defaults.relayBackoffBaseMs, capMs: defaults.relayBackoffCapMs }

function settingsOf(options: RelayOptions, { sql }: SqlStore): RelaySettings {
  const { publisher, leaseMs = defaults.relayLeaseMs, maxAttempts = defaults.relayAttempts } = options
  const { backoff = BACKOFF, idMs = defaults.outboxIdMs, forgetKeysMs = null } = options
  if (typeof publisher?.publish !== 'function')
    badOption('Relay', 'publisher', 'must be the adapter of a broker, such as createLocalBus({ store })')
  whole('leaseMs', leaseMs, limits.leaseMinMs, limits.leaseMaxMs)
  // What is begun is confirmed and marked while the lease lasts.
  const publishMost = Math.floor(leaseMs / 2)
  const { publishMs = Math.min(defaults.relayPublishMs, publishMost) } = options
  whole('publishMs', publishMs, 1, publishMost)
  whole('maxAttempts', maxAttempts, 1, Number.MAX_SAFE_INTEGER)
  whole('backoff.baseMs', backoff.baseMs)
  whole('backoff.capMs', backoff.capMs)
  whole('idMs', idMs)
  if (forgetKeysMs !== null) whole('forgetKeysMs', forgetKeysMs)
  return {
    publisher,
    leaseMs,
    publishMs,
    maxAttempts,
    backoff,
    away: { baseMs: limits.relayAwayBaseMs, capMs: limits.relayAwayCapMs },
    idMs,
    forgetKeysMs,
    notified: sql.dialect.notifies,
  }
}

function whole(option: string, value: number, least = 1, most: number = limits.longestMs): void {
  wholeOption('Relay', option, value, least, most)
}
