import { createListeners } from '../runtime/listeners.ts'
import type { Loop } from '../runtime/loop.ts'
import { startLoop } from '../runtime/loop.ts'
import type { Runtime, Timer } from '../runtime/runtime.ts'
import { createRuntime, sleep } from '../runtime/runtime.ts'
import { startSweepLoop } from '../runtime/sweep-loop.ts'
import { checkLedgerOptions, checkStore } from './arguments.ts'
import { createAttemptLimit } from './attempt-limit.ts'
import { createReplayCache } from './cache.ts'
import type { Around, Context } from './context.ts'
import { openTransaction } from './context.ts'
import { OnceError } from './core/errors.ts'
import type { IdentityParts } from './core/identity.ts'
import { defaults, limits, SECOND } from './core/limits.ts'
import { checkOptionNames } from './core/option-names.ts'
import type { Declared } from './declared.ts'
import { declare } from './declared.ts'
import type { AnyDefinition, LeasedDefinition, TransactionDefinition } from './definition.ts'
import { createHeart } from './effect-context.ts'
import type { LedgerEvent, Listener } from './events.ts'
import { createFlights } from './flight.ts'
import { createJoiners } from './join.ts'
import type { LeasedOperation, TransactionalOperation } from './operation.ts'
import { createOperation } from './operation.ts'
import type { Operator } from './operator.ts'
import { createOperator } from './operator.ts'
import { createProber } from './probe.ts'
import type { Reconciler } from './reconcile.ts'
import { createReconciler } from './reconcile.ts'
import { createRequests, createSettler } from './requests.ts'
import type { PartsWithout, ScopeParts } from './scope.ts'
import { narrowed } from './scope.ts'
import { adopt } from './store/foreign.ts'
import type { OrmTransactions } from './store/orm.ts'
import type { OutboxPort } from './store/outbox.ts'
import type { AdoptedTransactions, Store, TransactionalStore, Transactions } from './store/port.ts'
import type { Sweeper } from './sweep.ts'
import { createSweeper } from './sweep.ts'
import { createTallyBook, type TallyBook } from './tally.ts'
import type { UniqueAnswer } from './unique.ts'
import { claimUnique } from './unique.ts'

/** The type of the transaction that a store hands to effects; never where it has none. */
export type TxOf<S extends Store> = S extends TransactionalStore<infer Tx> ? Tx : never

/** Declares operations whose calls give only the parts of the identity that are not fixed. */
export interface LedgerScope<Tx, Fixed> {
  // oxlint-disable-next-line typescript/no-explicit-any -- without an input type any input is accepted.
  operation<I = any>(definition: LeasedDefinition<I>): LeasedOperation<I, PartsWithout<IdentityParts, Fixed>>
  // oxlint-disable-next-line typescript/no-explicit-any -- without an input type any input is accepted.
  operation<I = any>(
    definition: [Tx] extends [never] ? never : TransactionDefinition<I>,
  ): TransactionalOperation<I, Tx, PartsWithout<IdentityParts, Fixed>>
  scope<F extends ScopeParts>(fixed: F): LedgerScope<Tx, Fixed & F>
}

/** What users hold: claim → execute → record. */
export interface Ledger<Tx> extends Operator {
  /** What it was made with. Inboxes, outboxes, sagas and engines keep their tables in it. */
  readonly store: Store
  /** The transactions of the ORM that it was made with; null without one. */
  readonly orm: AdoptedTransactions<Tx> | null
  /** Declares a command. Names are unique within a ledger. */
  // oxlint-disable-next-line typescript/no-explicit-any -- without an input type any input is accepted.
  operation<I = any>(definition: LeasedDefinition<I>): LeasedOperation<I>
  // oxlint-disable-next-line typescript/no-explicit-any -- without an input type any input is accepted.
  operation<I = any>(definition: [Tx] extends [never] ? never : TransactionDefinition<I>): TransactionalOperation<I, Tx>
  /** Fixes parts of the identity. For an operation that is declared already, call `scope` of the operation. */
  scope<F extends ScopeParts>(fixed: F): LedgerScope<Tx, F>
  /**
   * A permanent claim on a business value; it outlives every retention. Inside a transaction effect it commits with it.
   */
  unique(tenant: string, scope: string, value: string, options: { readonly owner: string }): Promise<UniqueAnswer>
  /** Lets effects add messages that commit with them; `createOutbox({ ledger })` calls it. A ledger has one outbox. */
  setOutbox(outbox: OutboxPort<never>): void
  on(listener: Listener): () => void
  /**
   * Has `stop` call this first: what was made from the ledger ends before it does. Inboxes, sagas, relays and engines do so by
   * themselves. The function that it returns takes it back.
   */
  defer(stop: () => unknown): () => void
  /** The background work by hand: for tests, and for who runs it elsewhere. */
  readonly upkeep: { sweep(): Promise<number>; reconcile(): Promise<void> }
  /**
   * Stops the inboxes, sagas, relays and engines that were made from it, accepts nothing new, waits for what runs, writes what
   * is left, and gives the store's idle connections back: a pool can be ended after it, and a file be moved. Another ledger
   * can go on using the store.
   */
  stop(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

export interface LedgerOptions<S extends Store, Tx = TxOf<S>> {
  /** Where records are kept: `postgresStore(pool)`, `sqliteStore(path)`, `redisStore(client)` or `memoryStore()`. */
  readonly store: S
  /**
   * Runs `transaction` operations in transactions of your ORM, on the store's database: `kysely(db)` of
   * `onceonly/kysely`. The `tx` of an effect is the ORM's own handle then.
   * @default the store's own transactions
   */
  readonly transactions?: OrmTransactions<Tx>
  /** Called with every event: claims, outcomes, replays and what needs an operator. @default none */
  readonly on?: Listener
  /** Put around every claim and every effect: spans and timings. Telemetry has one. @default none */
  readonly around?: Around
  /** Sweep, reconcile and write counts by themselves; on by default. @default true */
  readonly background?: boolean
  /**
   * Lets a name be declared again, and the last declaration count: for development with hot reload, where a module is evaluated
   * again while the ledger stays. In production two operations under one name are a mistake.
   * @default false
   */
  readonly redeclare?: boolean
  /** Time, randomness and scheduling; a simulator gives its own. @default the system's clock, timers and randomness */
  readonly runtime?: Runtime
}

/** How long `stop` waits for running effects. */
const DRAIN_MS = 30 * SECOND
/** The reconciler comes often enough to find a lapsed lease within one lease. */
const ROUNDS_PER_LEASE = 3

const ledgerOptionNames = [
  'store',
  'transactions',
  'on',
  'around',
  'background',
  'redeclare',
  'runtime',
] satisfies (keyof LedgerOptions<Store>)[]

/**
 * Makes a ledger: it claims identities, runs effects under a lease or in a transaction, and replays recorded outcomes.
 *
 * @example
 * ```ts
 * import { createLedger } from 'onceonly'
 * import { sqliteStore } from 'onceonly/sqlite'
 *
 * const once = createLedger({ store: sqliteStore('orders.db') })
 * const greet = once.operation({ name: 'greet', effect: 'repeatable' })
 * // However often this is called with this key, one attempt succeeds, and all calls get its result.
 * const text = await greet.run({ tenant: 'acme', caller: 'web', key: 'ann-1' }, 'Ann', () => 'Hello, Ann')
 * console.log(text)
 * await once.stop()
 * ```
 */
export function createLedger<S extends Store, Tx = TxOf<S>>(options: LedgerOptions<S, Tx>): Ledger<Tx> {
  checkLedgerOptions(options)
  checkOptionNames('createLedger', options, ledgerOptionNames)
  const { store, background = true } = options
  checkStore('createLedger', store)
  const context = createContext(options)
  const { events, flights, runtime } = context
  if (options.on !== undefined) events.on(options.on)
  const declared = new Map<string, Declared>()
  const sweeper = createSweeper(context)
  const reconciler = createReconciler(context, declared)
  const loops: Loop[] = []
  // Not at once: the operations that are declared right after this decide how often to poll.
  if (background) {
    runtime.soon(() => {
      if (!context.life.stopped) loops.push(...startLoops(context, declared, sweeper, reconciler))
    })
  }

  function operation(definition: AnyDefinition) {
    const op = declare(definition)
    if (context.life.stopped)
      throw new OnceError('stopped', `Operation ${op.name} is declared after the ledger stopped.`)
    if (declared.has(op.name) && options.redeclare !== true) {
      const text = `Operation ${op.name} is declared twice. Declare it once, and share what \`operation\` returns; where hot reload declares it again, set \`redeclare\` in development.`
      throw new OnceError('bad_option', text)
    }
    if (op.effect === 'transaction' && context.transactions === null) {
      throw new OnceError(
        'bad_option',
        `The ${store.name} store has no transactions for ${op.name}. Use sqliteStore(path) or postgresStore(pool), or another \`effect\`.`,
      )
    }
    declared.set(op.name, op)
    return createOperation(context, op)
  }

  const deferred = new Set<() => unknown>()
  let stopping: Promise<void> | null = null
  async function drain(): Promise<void> {
    // What still runs in them may need the ledger for its end.
    const ends = [...deferred].map(async (end) => {
      await end()
    })
    if (ends.length > 0) await Promise.race([Promise.allSettled(ends), sleep(runtime, DRAIN_MS, true)])
    context.life.stopped = true
    const drained = flights.drain().then(() => context.settler.drain())
    await Promise.race([drained, sleep(runtime, DRAIN_MS, true)])
    // A round that hangs, in a probe or in the store, must not keep the process forever.
    const rounds = Promise.all(loops.map((loop) => loop.stop()))
    await Promise.race([rounds, sleep(runtime, limits.storeCallMs, true)])
    await context.tally
      .flush()
      .catch((error: unknown) => events.emit({ kind: 'background_failed', what: 'tally', error }))
    context.joiners.stop()
    context.heart.stop()
    await Promise.race([context.requests.drain(), sleep(runtime, limits.storeCallMs, true)])
    await store.rest?.()
  }

  const stop = () => (stopping ??= drain())
  const scoped = (fixed: ScopeParts): LedgerScope<Tx, ScopeParts> => ({
    operation: (definition: AnyDefinition) => operation(definition).scope(fixed) as never,
    scope: (further) => scoped(narrowed(fixed, further)) as never,
  })
  return {
    ...createOperator(context, declared),
    store,
    orm: context.orm as AdoptedTransactions<Tx> | null,
    operation: operation as Ledger<Tx>['operation'],
    scope: (fixed) => scoped(narrowed({}, fixed)) as never,
    unique(tenant, scope, value, { owner }) {
      const outer = openTransaction()
      const apply = outer !== null && outer.store === store ? outer.session.apply : context.requests.apply
      return claimUnique((request) => apply(request), runtime, { tenant, scope, value, owner })
    },
    setOutbox(outbox) {
      if (context.outbox !== null && options.redeclare !== true) {
        throw new OnceError('bad_option', 'The ledger has an outbox already. Make one, and share it.')
      }
      context.outbox = outbox as OutboxPort<unknown>
    },
    on: (listener) => events.on(listener),
    defer(end) {
      deferred.add(end)
      return () => void deferred.delete(end)
    },
    upkeep: {
      sweep: sweeper.round,
      async reconcile() {
        await reconciler.lapsedLeases()
        await reconciler.unknownOutcomes()
      },
    },
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

function createContext<S extends Store, Tx>(options: LedgerOptions<S, Tx>): Context {
  const { store, transactions, around = null, runtime = createRuntime() } = options
  const events = createListeners<LedgerEvent>()
  const requests = createRequests(store.claims, runtime)
  const cache = createReplayCache(runtime)
  const orm = transactions === undefined ? null : adopt('createLedger', store, transactions)
  return {
    store,
    transactions: (orm as Transactions<unknown> | null) ?? store.transactions ?? null,
    orm: orm as AdoptedTransactions<unknown> | null,
    runtime,
    events,
    around,
    requests,
    cache,
    heart: createHeart(requests, runtime, events),
    settler: createSettler(requests, runtime, events),
    joiners: createJoiners(store.claims, runtime, cache.drop),
    flights: createFlights(),
    tally: createTallyBook(store, runtime),
    prober: createProber(requests, runtime, events),
    attemptLimit: createAttemptLimit(runtime),
    outbox: null,
    life: { stopped: false },
  }
}

function startLoops(
  { runtime, events, tally }: Context,
  declared: ReadonlyMap<string, Declared>,
  sweeper: Sweeper,
  reconciler: Reconciler,
): Loop[] {
  const failed = (what: string) => (error: unknown) => events.emit({ kind: 'background_failed', what, error })
  const start = (what: string, everyMs: () => number, round: () => Promise<unknown>) =>
    startLoop({ runtime, everyMs, round: async () => void (await round()), failed: failed(what) })
  const shortestLeaseMs = () => Math.min(defaults.leaseMs, ...[...declared.values()].map((op) => op.leaseMs))
  const everyMs = () => shortestLeaseMs() / ROUNDS_PER_LEASE
  return [
    startSweepLoop({
      runtime,
      everyMs: limits.ledgerSweepEveryMs,
      idleMs: limits.sweepEveryMs,
      share: limits.sweepShare,
      step: sweeper.step,
      failed: failed('sweep'),
    }),
    start('lapsed', everyMs, reconciler.lapsedLeases),
    // Apart from the leases: a provider that is slow to answer must not hold them up.
    start('unknown', everyMs, reconciler.unknownOutcomes),
    writeBehind(runtime, tally, failed('tally')),
  ]
}

/** Counts are written some time after the first of them: without any there is no timer. */
function writeBehind(runtime: Runtime, tally: TallyBook, failed: (error: unknown) => void): Loop {
  let timer: Timer | null = null
  let writing: Promise<void> = Promise.resolve()
  tally.whenCounted(() => {
    const write = () => {
      writing = tally.flush().catch(failed)
    }
    timer = runtime.setTimer(limits.tallyEveryMs * (0.5 + runtime.random()), write, true)
  })
  return {
    async stop() {
      timer?.cancel()
      await writing
    },
  }
}
