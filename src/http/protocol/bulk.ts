import { checkLedger } from '../../ledger/arguments.ts'
import { isOnceError, OnceError } from '../../ledger/core/errors.ts'
import { failureOf, isVerdict } from '../../ledger/core/verdict.ts'
import type { EffectKind, LeasedDefinition, TransactionDefinition } from '../../ledger/definition.ts'
import type { EffectContext, TransactionContext } from '../../ledger/effect-context.ts'
import type { Granted } from '../../ledger/granted.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { LeasedOperation, TransactionalOperation } from '../../ledger/operation.ts'
import type { Execution } from '../../ledger/present.ts'
import { createListeners } from '../../runtime/listeners.ts'
import type { BulkItem } from './batch.ts'
import type { ItemWords, Words } from './bulk-words.ts'
import { answered, FAULT, failure, plainWords, refused, shown, undecided } from './bulk-words.ts'
import type { RouteNotes } from './route.ts'

/** What is answered for one item. Every item has an outcome of its own, whatever became of its neighbours. */
export type ItemResult = { readonly itemKey: string } & ItemWords

/** Tenant, caller and name of the batch: with the item's key, the identity of every item. */
export interface BatchIdentity {
  readonly tenant: string
  readonly caller: string
  readonly batch: string
}

interface Common<T> {
  /** For the design checklist: what no option of the batch says. @default none */
  readonly about?: RouteNotes
  /** How many items run at once; one after the other, when left out. */
  readonly lanes?: number
  /**
   * Puts what was recorded into words, with the rights and the state of now. It is the item's resource, when left out.
   */
  readonly show?: (value: T) => ItemWords | Promise<ItemWords>
  /** Gets errors that no caller sees; `console.error` by default. */
  readonly onError?: (error: unknown) => void
}

type Kept<Definition> = Omit<Definition, 'keep' | 'sensitive' | 'pointer' | 'rebuild' | 'authorize' | 'whileRunning'>
export type LeasedBulk<I, T> = Kept<LeasedDefinition<I>> & Common<T>
export type TransactionalBulk<I, T> = Kept<TransactionDefinition<I>> & Common<T>

/** The public part of a batch's definition. */
export type BulkDefinition = Pick<
  LeasedBulk<never, never>,
  'name' | 'retainMs' | 'afterExpiry' | 'refuseMs' | 'fingerprint' | 'shape' | 'probe' | 'about'
> & {
  /** What a crash in the middle of an item means. */
  readonly effect: EffectKind
}

/**
 * A batch of commands, not one command: each item has an identity, a claim and an outcome of its own, so that a partial
 * retry runs only what is not done. The answer for the batch is never recorded.
 */
export interface Bulk<I, T, Work> {
  /** For the design checklist and the OpenAPI document. */
  readonly definition: BulkDefinition
  /**
   * Answers in the order of the items. The effect's value is recorded; `final`, `notDone` and `released` mean for an item what
   * they mean for any command, and the caller gets the `code`, the message and the members of `data` of their error. Of any
   * other thrown error the caller learns only that it failed.
   */
  run(
    batch: BatchIdentity,
    items: readonly BulkItem<I>[],
    effect: (item: BulkItem<I>, work: Work) => Promise<T>,
  ): Promise<readonly ItemResult[]>
}

type Effect<I, T, Work> = (item: BulkItem<I>, work: Work) => Promise<T>

/**
 * Runs the items of a batch, each once under its own key.
 *
 * @example
 * ```ts
 * import { createLedger } from 'onceonly'
 * import { createBulk } from 'onceonly/http'
 * import { memoryStore } from 'onceonly/memory'
 *
 * const ledger = createLedger({ store: memoryStore() })
 * export const imports = createBulk(ledger, { name: 'contact.import', effect: 'repeatable' })
 * ```
 */
export function createBulk<I, T>(ledger: Ledger<unknown>, definition: LeasedBulk<I, T>): Bulk<I, T, EffectContext>
export function createBulk<I, T, Tx>(
  ledger: Ledger<Tx>,
  definition: TransactionalBulk<I, T>,
): Bulk<I, T, TransactionContext<Tx>>
export function createBulk<I, T>(
  ledger: Ledger<unknown>,
  definition: LeasedBulk<I, T> | TransactionalBulk<I, T>,
): Bulk<I, T, never> {
  checkLedger('createBulk', ledger)
  const { lanes = 1, show, onError = (error) => console.error(error), about: _, ...declared } = definition
  // What the application's listener throws must not strand the items that are reserved.
  const words = { show: show ?? plainWords, onError: createListeners(onError).emit }
  // A leased item that runs in another request is answered at once, so that it delays no other.
  const waits = declared.effect === 'transaction' ? {} : { whileRunning: 'conflict' }
  const operation = ledger.operation({ ...declared, ...waits } as never) as unknown
  const bulk =
    declared.effect === 'transaction'
      ? transactional(operation as TransactionalOperation<I, never>, words)
      : leased(operation as LeasedOperation<I>, words)
  return {
    definition: definition as BulkDefinition,
    async run(batch, items, effect) {
      if (new Set(items.map(({ itemKey }) => itemKey)).size < items.length) {
        throw new OnceError('bad_input', 'An item key stands twice in one batch.')
      }
      const results = await bulk(batch, items, effect as Effect<I, T, unknown>, lanes)
      return results.map((named, at) => ({ itemKey: items[at]?.itemKey ?? '', ...named }))
    },
  }
}

type Run<I, T> = (
  batch: BatchIdentity,
  items: readonly BulkItem<I>[],
  effect: Effect<I, T, unknown>,
  lanes: number,
) => Promise<ItemWords[]>

function partsOf({ tenant, caller, batch }: BatchIdentity, { itemKey }: BulkItem<unknown>) {
  return { tenant, caller, batch, key: itemKey }
}

/** Claim, effect and outcome of an item are one transaction: nothing of it is ever half done. */
function transactional<I, T>(operation: TransactionalOperation<I, never>, words: Words<T>): Run<I, T> {
  return (batch, items, effect, lanes) =>
    inLanes(items, lanes, async (item) => {
      let meant = false
      const run = async (work: TransactionContext<never>) => {
        meant = false
        try {
          return await effect(item, work)
        } catch (thrown) {
          meant = isVerdict(thrown)
          throw thrown
        }
      }
      let execution: Execution<T>
      try {
        execution = await operation.execute(partsOf(batch, item), item.input, run)
      } catch (error) {
        // It was rolled back, whatever it was.
        if (isOnceError(error)) return refused(error)
        words.onError(error)
        return failure(meant ? failureOf(error) : FAULT, true)
      }
      return answered(execution, words)
    })
}

function leased<I, T>(operation: LeasedOperation<I>, words: Words<T>): Run<I, T> {
  return async (batch, items, effect, lanes) => {
    // 1. All items are reserved together: they share the store's round trips, and a reservation has begun nothing.
    const claims = await Promise.all(
      items.map(async (item) => {
        try {
          return await operation.begin(partsOf(batch, item), item.input, { reserve: true })
        } catch (error) {
          return { kind: 'error', error } as const
        }
      }),
    )
    // 2. Each is started just before its effect: a crash in between leaves those that wait untouched, and free.
    return inLanes(items, lanes, async (item, at) => {
      const begun = claims[at]
      if (begun === undefined || begun.kind === 'error') return undecided(begun?.error, words)
      if (begun.kind === 'answered') return answered(begun.execution as Execution<T>, words)
      return carriedOut(begun, () => effect(item, begun.context), words)
    })
  }
}

async function carriedOut<T>(
  granted: Granted<EffectContext>,
  effect: () => Promise<T>,
  words: Words<T>,
): Promise<ItemWords> {
  try {
    await granted.start()
  } catch (error) {
    // Nothing has begun; what cannot be given back lapses by itself.
    await granted.abandon(error)
    return undecided(error, words)
  }
  let value: T
  try {
    value = await granted.inside(effect)
  } catch (thrown) {
    return settledAs(await granted.settle({ thrown }), thrown, words)
  }
  const execution = await granted.settle({ value })
  // The effect is over, and its caller gets the result, also when the lease was lost before it could be recorded.
  if (execution.kind === 'refused') words.onError(execution.error)
  return shown(words, value)
}

/** What was thrown, as the ledger has judged it. */
function settledAs<T>(execution: Execution<unknown>, thrown: unknown, words: Words<T>): ItemWords {
  const error = isVerdict(thrown) ? thrown.error : thrown
  const named = failureOf(error)
  const refusal = execution.kind === 'refused' ? execution.error : null
  if (refusal?.code === 'lease_lost') words.onError(refusal)
  if (isVerdict(thrown) && thrown.verdict === 'final') return failure(named)
  if (isVerdict(thrown) && thrown.verdict === 'released')
    return failure(named, (error as { retryable?: unknown } | null)?.retryable === true)
  words.onError(error)
  if (refusal?.code !== 'not_done') return { status: 'UNKNOWN' }
  if (!isVerdict(thrown)) return failure(FAULT, true)
  const { retryAfterMs } = thrown
  return { ...failure(named, true), ...(retryAfterMs === null ? {} : { retryAfterMs }) }
}

async function inLanes<I, R>(
  items: readonly I[],
  lanes: number,
  work: (item: I, at: number) => Promise<R>,
): Promise<R[]> {
  const results: R[] = []
  const waiting = items.entries()
  await Promise.all(
    Array.from({ length: Math.min(lanes, items.length) }, async () => {
      for (const [at, item] of waiting) results[at] = await work(item, at)
    }),
  )
  return results
}
