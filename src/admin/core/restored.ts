import { OnceError } from '../../ledger/core/errors.ts'
import type { Fence } from '../../ledger/core/identity.ts'
import { limits } from '../../ledger/core/limits.ts'
import type { LostTime, Store } from '../../ledger/store/port.ts'
import { timeOfKey } from '../../ledger/store/restores.ts'

const CALL = { timeoutMs: limits.storeCallMs }
/** Enough to see which operations have keys without a time, and quick on any store. */
const LOOKED_MOST = 2_000

/** Keys of an operation whose effect must not run twice, among its newest records. */
export interface RestoreRisk {
  readonly operation: string
  readonly keys: number
  /** Without a time in them: one of the time that is gone is taken for a new one, and its effect runs again. */
  readonly undated: number
}

/** What was done about a restored backup, and what cannot be done. */
export interface Restored extends LostTime {
  /** Every later one is larger. */
  readonly fence: Fence
  /** The largest that the backup knew. */
  readonly newestBefore: Fence
  readonly risks: readonly RestoreRisk[]
}

export async function noteRestored(store: Store, at: number): Promise<Restored> {
  const { restores } = store
  if (restores === undefined) throw new OnceError('bad_option', `The ${store.name} store keeps no note of restores.`)
  const noted = await restores.add(at, CALL)
  return { ...noted, risks: await risksOf(store) }
}

async function risksOf(store: Store): Promise<readonly RestoreRisk[]> {
  const found = new Map<string, { keys: number; undated: number }>()
  let cursor: string | null = null
  for (let looked = 0; looked < LOOKED_MOST; looked += limits.pageRows) {
    const page = await store.queries.list({}, { limit: limits.pageRows, cursor }, CALL)
    for (const { record } of page.rows) {
      if (record.policy.onAbandoned !== 'hold') continue
      const { operation, key } = record.identity
      const counted = found.get(operation) ?? { keys: 0, undated: 0 }
      counted.keys += 1
      if (timeOfKey(key) === null) counted.undated += 1
      found.set(operation, counted)
    }
    cursor = page.cursor
    if (cursor === null) break
  }
  return [...found].map(([operation, counts]) => ({ operation, ...counts })).filter(({ undated }) => undated > 0)
}
