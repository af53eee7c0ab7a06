import { wrongCall, wrongClaim } from './arguments.ts'
import type { Begun } from './begin.ts'
import { begin } from './begin.ts'
import type { Claimed, ClaimOptions } from './claim.ts'
import { claimCommand } from './claim.ts'
import type { Context } from './context.ts'
import type { IdentityParts } from './core/identity.ts'
import { checkIdentity, recordIdOf } from './core/identity.ts'
import type { Declared } from './declared.ts'
import { commandOf } from './declared.ts'
import type { Effect } from './effect.ts'
import type { EffectContext, TransactionContext } from './effect-context.ts'
import type { CallOptions } from './execute.ts'
import { execute } from './execute.ts'
import type { Execution } from './present.ts'

/** What every operation has, whatever its effect is given. */
export interface Operation<I, C> {
  readonly name: string
  /** The effect's value, from this attempt or from the record. Throws what the error table says. */
  run<T>(parts: IdentityParts, input: I, effect: (context: C) => T | Promise<T>, options?: CallOptions): Promise<T>
  /** The same, with `kind` for how the value was found. Refusals are answers, not exceptions. */
  execute<T>(
    parts: IdentityParts,
    input: I,
    effect: (context: C) => T | Promise<T>,
    options?: CallOptions,
  ): Promise<Execution<T>>
  /**
   * In two phases, for effects that are no function call: an answer, or a granted claim. Run the effect, then settle.
   * The signal counts until the grant.
   */
  begin(parts: IdentityParts, input: I, options?: CallOptions): Promise<Begun<C>>
}

/** An operation whose effect commits together with its record. */
export type TransactionalOperation<I, Tx> = Operation<I, TransactionContext<Tx>>

/** An operation whose effect runs under a lease. */
export interface LeasedOperation<I> extends Operation<I, EffectContext> {
  /** No sugar: every possibility is a case, and a granted lease is yours to settle. */
  claim(parts: IdentityParts, input: I, options?: ClaimOptions): Promise<Claimed>
  /** Counts a repeat that was answered without the ledger, so that operators see it. Written behind, as all counts are. */
  noteRepeat(parts: IdentityParts, as: 'replays' | 'inProgress'): void
}

export function createOperation<I>(context: Context, op: Declared): Operation<I, never> | LeasedOperation<I> {
  async function call(
    method: 'run' | 'execute',
    parts: IdentityParts,
    input: I,
    effect: Effect,
    options: CallOptions = {},
  ): Promise<Execution<never>> {
    const wrong = wrongCall(method, effect, options)
    if (wrong !== null) throw wrong
    return execute(context, op, { parts, input }, options, { effect, handedOver: false }) as Promise<Execution<never>>
  }
  const operation: Operation<I, never> = {
    name: op.name,
    run: async (parts, input, effect, options) => valueOf(await call('run', parts, input, effect, options)),
    execute: (parts, input, effect, options) => call('execute', parts, input, effect, options),
    begin: (parts, input, options = {}) => begin(context, op, { parts, input }, options) as Promise<Begun<never>>,
  }
  if (op.effect === 'transaction') return operation
  return {
    ...(operation as Operation<I, EffectContext>),
    async claim(parts, input, options = {}) {
      const wrong = wrongClaim(options)
      if (wrong !== null) throw wrong
      return claimCommand(context, op, commandOf(op, parts, input, undefined), options)
    },
    noteRepeat(parts, as) {
      const identity = { ...parts, operation: op.name }
      checkIdentity(identity)
      context.tally.count(recordIdOf(identity), identity, as)
    },
  }
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
