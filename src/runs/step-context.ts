import type { EffectContext, TransactionContext } from '../ledger/effect-context.ts'
import type { SqlTx } from '../ledger/store/sql.ts'

/**
 * What a step is given while it acts: the context of every effect, without what only a ledger's record has. The effect key
 * is the same over every attempt, restart and replay. The signal fires when the result will not be recorded any more: time
 * is up, the run was cancelled, or another worker has it; `derive` throws then.
 */
export type StepContext = Pick<EffectContext, 'effectKey' | 'signal' | 'fence' | 'attemptNumber' | 'derive'>

/** What is written through `tx` commits with the step's result, or not at all. */
export type TransactionStepContext<Tx = SqlTx> = StepContext & Pick<TransactionContext<Tx>, 'tx'>

/** What a provider, or the step itself, says when it is asked whether something happened. */
export type Verified<T> =
  | { readonly kind: 'done'; readonly result: T }
  | { readonly kind: 'not_done' }
  | { readonly kind: 'unknown' }
