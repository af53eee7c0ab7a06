import { decodeValue } from '../ledger/core/codec.ts'
import type { Received } from './context.ts'
import type { Entry } from './entry.ts'

/** What a wait records: which signal it took, so that no other wait takes it again; null for none in time. */
export interface Kept<T> {
  readonly id: string | null
  readonly received: Received<T>
}

export function readKept<T>(result: string | null): Kept<T> {
  return decodeValue(result ?? '') as Kept<T>
}

/** The ids of all signals that were taken by some wait before. */
export function takenSignals(entries: readonly Entry[]): Set<string> {
  const kept = entries.filter(({ kind, state }) => kind === 'signal' && state === 'succeeded')
  return new Set(kept.flatMap(({ result }) => readKept(result).id ?? []))
}
