import type { Awaitable } from '../runtime/runtime.ts'
import { checkEffect, wrongCall } from './arguments.ts'
import type { BeginOptions, CallOptions } from './begin.ts'
import { begin, commandOf, execute } from './begin.ts'
import type { Claimed, ClaimOptions } from './claim.ts'
import { claimCommand } from './claim.ts'
import type { Context } from './context.ts'
import { stopped } from './context.ts'
import type { IdentityParts } from './core/identity.ts'
import { checkIdentity, recordIdOf } from './core/identity.ts'
import { checkOptionNames } from './core/option-names.ts'
import type { Declared } from './declared.ts'
import type { EffectKind } from './definition.ts'
import type { Effect } from './effect.ts'
import type { EffectContext, TransactionContext } from './effect-context.ts'
import type { Begun } from './granted.ts'
import type { Execution } from './present.ts'
import { present } from './present.ts'
import type { PartsWithout, ScopeParts } from './scope.ts'
import { narrowed, partsIn } from './scope.ts'
import { withinTransaction } from './transact.ts'

/** What every operation has, whatever its effect is given. `Parts` is what a call gives of its identity. */
export interface Operation<I, C, Parts = IdentityParts> {
  readonly name: string
  /**
   * The effect's value, from this attempt or from the record: plain data, with dates, bytes, big integers, maps and sets as
   * they were. Throws what the error table says.
   */
  run<T>(parts: Parts, input: I, effect: (context: C) => T | Promise<T>, options?: CallOptions): Promise<T>
  /** The same, with `kind` for how the value was found. Refusals are answers, not exceptions. */
  execute<T>(
    parts: Parts,
    input: I,
    effect: (context: C) => T | Promise<T>,
    options?: CallOptions,
  ): Promise<Execution<T>>
  /**
   * In two phases, for effects that are no function call: an answer, or a granted claim. Run the effect, then settle.
   * The signal counts until the grant. Await it: it is a promise only where something has to be waited for, and what is
   * wrong with the call is thrown at once.
   */
  begin(parts: Parts, input: I, options?: BeginOptions): Awaitable<Begun<C>>
}

/** An operation whose effect commits together with its record. */
export interface TransactionalOperation<I, Tx, Parts = IdentityParts>
  extends Operation<I, TransactionContext<Tx>, Parts> {
  /**
   * The same inside a transaction that your ORM has open already: your commit commits both, your rollback undoes both. An
   * effect that throws undoes what it wrote itself; your transaction continues.
   *
   * @param handle what the callback of your ORM's transaction was given
   * @example
   * ```ts
   * import { Kysely, PostgresDialect } from 'kysely'
   * import { createLedger } from 'onceonly'
   * import { kysely } from 'onceonly/kysely'
   * import { postgresStore } from 'onceonly/postgres'
   * import { Pool } from 'pg'
   *
   * const pool = new Pool()
   * const db = new Kysely<{ orders: { item: string } }>({ dialect: new PostgresDialect({ pool }) })
   * const once = createLedger({ store: postgresStore(pool), transactions: kysely(db) })
   * const place = once.operation<{ item: string }>({ name: 'order.place', effect: 'transaction' })
   * await db.transaction().execute(async (trx) => {
   *   const order = { item: 'lamp' }
   *   await place.within(trx, { tenant: 'acme', caller: 'shop', key: 'click-1' }, order, async ({ tx }) => {
   *     await tx.insertInto('orders').values(order).execute()
   *   })
   * })
   * ```
   */
  within<T>(
    handle: Tx,
    parts: Parts,
    input: I,
    effect: (context: TransactionContext<Tx>) => T | Promise<T>,
    options?: Pick<CallOptions, 'as'>,
  ): Promise<T>
  /** The same operation with fixed parts of the identity; calls give the rest. */
  scope<F extends ScopeParts>(fixed: F): TransactionalOperation<I, Tx, PartsWithout<Parts, F>>
}

/** An operation whose effect runs under a lease. */
export interface LeasedOperation<I, Parts = IdentityParts> extends Operation<I, EffectContext, Parts> {
  /** The same operation with fixed parts of the identity; calls give the rest. */
  scope<F extends ScopeParts>(fixed: F): LeasedOperation<I, PartsWithout<Parts, F>>
  /** No sugar: every possibility is a case, and a granted lease is yours to settle. */
  claim(parts: Parts, input: I, options?: ClaimOptions): Promise<Claimed>
  /** Counts a repeat that was answered without the ledger, so that operators see it. Written behind, as all counts are. */
  noteRepeat(parts: Parts, as: 'replays' | 'inProgress'): void
}

const NO_OPTIONS: CallOptions = {}

/** The options of calls are checked before anything is claimed. */
const callOptions = ['signal', 'as', 'decideMs'] satisfies (keyof CallOptions)[]

function checkCallOptions(
  method: string,
  options: CallOptions | BeginOptions,
  known: readonly string[] = callOptions,
): void {
  // Looked at one by one, because almost every call is right and the search for the nearest name takes its time.
  if (typeof options !== 'object' || options === null) checkOptionNames(`\`${method}\``, options, known)
  for (const name in options) if (!known.includes(name)) checkOptionNames(`\`${method}\``, options, known)
  const { signal, decideMs } = options
  if (signal !== undefined && typeof signal?.throwIfAborted !== 'function')
    throw wrongCall(method, 'takes an AbortSignal as `signal`')
  if (decideMs !== undefined && !isDuration(decideMs))
    throw wrongCall(method, 'takes a number of milliseconds from 0 as `decideMs`')
}

const beginOptions: readonly string[] = [...callOptions, 'reserve', 'fingerprints'] satisfies (keyof BeginOptions)[]

function checkReserve({ effect }: { readonly effect: EffectKind }): void {
  if (effect === 'transaction') throw wrongCall('begin', 'reserves no transaction: leave `reserve` out')
}

function checkClaimOptions(options: ClaimOptions): void {
  checkOptionNames('`claim`', options, ['reserve', 'waitMs', 'claimsAgain'] satisfies (keyof ClaimOptions)[])
  if (!isDuration(options.waitMs)) throw wrongCall('claim', 'takes a number of milliseconds from 0 as `waitMs`')
}

function isDuration(ms: number | undefined): boolean {
  return ms === undefined || (typeof ms === 'number' && ms >= 0)
}

/** Any operation, for code that only passes it on. */
type AnyOperation<I> = LeasedOperation<I, object> | TransactionalOperation<I, never, object>

export function createOperation<I>(context: Context, op: Declared, scope: ScopeParts | null = null): AnyOperation<I> {
  const partsOf = (parts: object) => (scope === null ? (parts as IdentityParts) : partsIn(scope, parts))
  async function call(method: string, parts: object, input: I, effect: Effect, options: CallOptions = NO_OPTIONS) {
    checkEffect(method, effect)
    checkCallOptions(method, options)
    return execute(context, op, partsOf(parts), input, options, effect) as Promise<Execution<never>>
  }
  const operation: Operation<I, never, object> & Pick<LeasedOperation<I, object>, 'scope'> = {
    name: op.name,
    scope: (fixed) => createOperation(context, op, narrowed(scope ?? {}, fixed)) as never,
    run: async (parts, input, effect, options) => valueOf(await call('run', parts, input, effect, options)),
    execute: (parts, input, effect, options) => call('execute', parts, input, effect, options),
    begin(parts, input, options = NO_OPTIONS) {
      checkCallOptions('begin', options, beginOptions)
      if (options.reserve === true) checkReserve(op)
      const whole = scope === null ? (parts as IdentityParts) : partsIn(scope, parts)
      return begin(context, op, whole, input, options) as Awaitable<Begun<never>>
    },
  }
  if (op.effect === 'transaction') {
    return {
      ...operation,
      scope: (fixed) => createOperation(context, op, narrowed(scope ?? {}, fixed)) as never,
      async within(handle, parts, input, effect, options = NO_OPTIONS) {
        checkEffect('within', effect)
        checkOptionNames('`within`', options, ['as'])
        if (context.life.stopped) throw stopped()
        const command = commandOf(op, partsOf(parts), input, options)
        const landing = await withinTransaction(context, op, command, effect, handle)
        return valueOf((await present(context, op, command, landing, true)) as Execution<never>)
      },
    } satisfies TransactionalOperation<I, never, object>
  }
  return {
    ...operation,
    async claim(parts, input, options = {}) {
      checkClaimOptions(options)
      return claimCommand(context, op, commandOf(op, partsOf(parts), input, NO_OPTIONS), options)
    },
    noteRepeat(parts, as) {
      const identity = { ...partsOf(parts), operation: op.name }
      checkIdentity(identity)
      context.tally.count(recordIdOf(identity), identity, as)
    },
  } satisfies LeasedOperation<I, object>
}

/** Union inside, throw at the edge. */
function valueOf<T>(execution: Execution<T>): T {
  switch (execution.kind) {
    case 'executed':
    case 'replayed':
    case 'joined':
      return execution.value
    case 'failed':
    case 'refused':
      throw execution.error
  }
}
