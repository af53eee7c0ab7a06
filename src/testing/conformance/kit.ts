import type { Case, Subject } from './case.ts'
import { claimCases } from './claim-cases.ts'
import { concurrencyCases } from './concurrency-cases.ts'
import { historyCases } from './history-cases.ts'
import { limitCases } from './limit-cases.ts'
import { operatorCases } from './operator-cases.ts'
import { raceCases } from './race-cases.ts'
import { transactionCases } from './transaction-cases.ts'
import { upkeepCases } from './upkeep-cases.ts'

export interface ConformanceOptions {
  /** Any runner: `test` of node:test, `it` of vitest, … */
  readonly test: (name: string, body: () => Promise<void>) => unknown
  /** A fresh store per case. */
  readonly open: () => Promise<Subject>
  /** How many random histories are compared with `transition`; each from its own seed. @default 20 */
  readonly histories?: number
}

const HISTORIES = 20

/** The cases of `storeConformance`, for a runner that wants them one by one. */
export function conformanceCases({
  histories = HISTORIES,
}: Pick<ConformanceOptions, 'histories'> = {}): readonly Case[] {
  return [
    ...claimCases,
    ...operatorCases,
    ...upkeepCases,
    ...raceCases,
    ...concurrencyCases,
    ...limitCases,
    ...transactionCases,
    ...historyCases(histories),
  ]
}

/**
 * Proves that a store does what `transition` says, alone, in batches, in races, across its clock, and in random histories.
 *
 * @example
 * ```ts
 * import { test } from 'node:test'
 * import { memoryStore } from 'onceonly/memory'
 * import { storeConformance } from 'onceonly/testing'
 *
 * storeConformance({
 *   test,
 *   open: async () => {
 *     const store = memoryStore({ testClock: true })
 *     return { store, close: () => store.stop() }
 *   },
 * })
 * ```
 */
export function storeConformance({ test, open, ...options }: ConformanceOptions): void {
  for (const each of conformanceCases(options)) test(each.name, () => runCase(each, open))
}

/** Fresh store per case; what a store does not offer is not asked of it. */
export async function runCase(each: Case, open: () => Promise<Subject>): Promise<void> {
  const subject = await open()
  try {
    if (each.needs === 'transactions' && subject.store.transactions === undefined) return
    await each.run(subject)
  } finally {
    await subject.close()
  }
}
