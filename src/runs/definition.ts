import { OnceError } from '../ledger/core/errors.ts'
import { limits } from '../ledger/core/limits.ts'
import { checkOptions, kindOf, wholeOption } from '../ledger/core/option-names.ts'
import type { OrmTransactions } from '../ledger/store/orm.ts'
import type { SqlTx } from '../ledger/store/sql.ts'
import type { RunBody, RunDefinition } from './context.ts'
import { checkName } from './names.ts'

export type { RunBody, RunDefinition } from './context.ts'

export interface RunOptions<Tx = unknown> {
  /** The version under which new runs of this definition start. @default 1 */
  readonly version?: number
  /**
   * How long a run may take in all, in milliseconds, by the store's clock: then it fails with `run_timed_out`. The time a run
   * waits in a queue does not count.
   * @default unlimited
   */
  readonly timeoutMs?: number
  /**
   * The same as its ledger has: then the `tx` of transactional steps is the handle of your ORM.
   * @default none: `tx` has `tx.query`
   */
  readonly transactions?: OrmTransactions<Tx>
}

/**
 * Only declares: nothing runs before an engine is given it. Between steps the body must be deterministic.
 *
 * @example
 * ```ts
 * import { defineRun } from 'onceonly/run'
 *
 * export const order = defineRun('order', async (run, input: { item: string }) => {
 *   const paid = await run.step('pay', ({ effectKey }) => `${input.item} paid under ${effectKey}`)
 *   const shipped = await run.waitFor<{ parcel: string }>('shipped', { timeoutMs: 86_400_000 })
 *   return { paid, parcel: shipped.kind === 'received' ? shipped.payload.parcel : null }
 * })
 * ```
 */
export function defineRun<I, O, Tx = SqlTx>(
  name: string,
  body: RunBody<I, O, Tx>,
  options: RunOptions<Tx> = {},
): RunDefinition<I, O> {
  checkOptions('defineRun', options, { version: true, timeoutMs: true, transactions: true })
  const { version = 1, timeoutMs = null, transactions } = options
  checkName('run', name)
  if (typeof body !== 'function') {
    throw new OnceError('bad_option', `The run ${name} needs a body: a function, not ${kindOf(body)}.`)
  }
  if (!Number.isSafeInteger(version) || version < 1 || version > limits.runVersions) {
    throw new OnceError(
      'bad_option',
      `The version of the run ${name} is not a whole number from 1 to ${limits.runVersions}.`,
    )
  }
  if (timeoutMs !== null) wholeOption(`The run ${name}:`, 'timeoutMs', timeoutMs, 1, limits.runTimeoutMs)
  // Only its body knows the type of its `tx`; that it is the one of the ledger is checked by the engine.
  const declared = { name, version, timeoutMs, body: body as unknown as RunBody<I, O> }
  return transactions === undefined ? declared : { ...declared, transactions }
}
