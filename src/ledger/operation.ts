import { wrongCall, wrongClaim } from './arguments.ts'
import type { Claimed, ClaimOptions } from './claim.ts'
import { claimCommand } from './claim.ts'
import type { Context, OpenTransaction } from './context.ts'
import { openTransaction } from './context.ts'
import type { IdentityParts } from './core/identity.ts'
import { checkIdentity, recordIdOf } from './core/identity.ts'
import type { Command, Declared } from './declared.ts'
import { commandOf } from './declared.ts'
import type { EffectContext, TransactionContext } from './effect-context.ts'
import type { CallOptions } from './execute.ts'
import { execute } from './execute.ts'
import { leadLeased } from './lead.ts'
import type { Execution } from './present.ts'
import { present } from './present.ts'
import type { TransactionEffect } from './transact.ts'
import { joinTransaction, leadTransaction } from './transact.ts'

/** An operation whose effect runs under a lease. */
export interface LeasedOperation<I> {
  readonly name: string
  /** The effect's value, from this attempt or from the record. Throws what the error table says. */
  run<T>(
    parts: IdentityParts,
    input: I,
    effect: (context: EffectContext) => T | Promise<T>,
    options?: CallOptions,
  ): Promise<T>
  /** The same, telling whether it was a replay. Refusals are answers, not exceptions. */
  execute<T>(
    parts: IdentityParts,
    input: I,
    effect: (context: EffectContext) => T | Promise<T>,
    options?: CallOptions,
  ): Promise<Execution<T>>
  /** No sugar: every possibility is a case, and a granted lease is yours to settle. */
  claim(parts: IdentityParts, input: I, options?: ClaimOptions): Promise<Claimed>
  /**
   * Counts a repeat that was answered without asking the ledger, because the caller knew the answer: so that operators are
   * told of it. Written behind, as all counts are.
   */
  noteRepeat(parts: IdentityParts, as: 'replays' | 'inProgress'): void
}

/** An operation whose effect commits together with its record. */
export interface TransactionalOperation<I, Tx> {
  readonly name: string
  run<T>(
    parts: IdentityParts,
    input: I,
    effect: (context: TransactionContext<Tx>) => T | Promise<T>,
    options?: CallOptions,
  ): Promise<T>
  execute<T>(
    parts: IdentityParts,
    input: I,
    effect: (context: TransactionContext<Tx>) => T | Promise<T>,
    options?: CallOptions,
  ): Promise<Execution<T>>
}

export function leasedOperation<I>(context: Context, op: Declared): LeasedOperation<I> {
  function call<T>(
    method: 'run' | 'execute',
    parts: IdentityParts,
    input: I,
    effect: (context: EffectContext) => T | Promise<T>,
    options: CallOptions = {},
  ): Promise<Execution<T>> {
    const wrong = wrongCall(method, effect, options)
    if (wrong !== null) return Promise.reject(wrong)
    const execution = execute(context, op, { parts, input }, options, (command, flight) =>
      leadLeased(context, op, command, effect, flight),
    )
    return execution as Promise<Execution<T>>
  }
  return {
    name: op.name,
    execute: (parts, input, effect, options) => call('execute', parts, input, effect, options),
    run: <T>(
      parts: IdentityParts,
      input: I,
      effect: (context: EffectContext) => T | Promise<T>,
      options: CallOptions | undefined,
    ) => call('run', parts, input, effect, options).then<T>(valueOf),
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

export function transactionalOperation<I, Tx>(context: Context, op: Declared): TransactionalOperation<I, Tx> {
  async function call<T>(
    method: 'run' | 'execute',
    parts: IdentityParts,
    input: I,
    effect: (context: TransactionContext<Tx>) => T | Promise<T>,
    options: CallOptions = {},
  ) {
    const wrong = wrongCall(method, effect, options)
    if (wrong !== null) throw wrong
    const work = effect as TransactionEffect<unknown>
    const outer = openTransaction()
    const execution =
      outer !== null && outer.store === context.store
        ? await insideOuter(context, op, commandOf(op, parts, input, options.as), work, outer)
        : await execute(context, op, { parts, input }, options, (command, flight) =>
            leadTransaction(context, op, command, work, flight),
          )
    return execution as Execution<T>
  }
  return {
    name: op.name,
    execute: (parts, input, effect, options) => call('execute', parts, input, effect, options),
    run: async (parts, input, effect, options) => valueOf(await call('run', parts, input, effect, options)),
  }
}

async function insideOuter(
  context: Context,
  op: Declared,
  command: Command,
  work: TransactionEffect<unknown>,
  outer: OpenTransaction,
): Promise<Execution<unknown>> {
  return present(context, op, command, await joinTransaction(context, op, command, work, outer), true)
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
