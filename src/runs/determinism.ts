import { encodeValue } from '../ledger/core/codec.ts'
import type { RunRow } from './entry.ts'
import { diverged } from './problems.ts'
import type { Suspension } from './waits.ts'

/** How one execution of a run ended. */
export type End =
  | { readonly kind: 'returned'; readonly value: unknown }
  | { readonly kind: 'threw'; readonly error: unknown }
  | { readonly kind: 'suspended'; readonly suspension: Suspension }
  /** The next run takes over, with this input. */
  | { readonly kind: 'continued'; readonly input: string }
  /** It was cancelled, and has cleaned up after itself. */
  | { readonly kind: 'cleaned' }
  | { readonly kind: 'lost' }

/** Runs whose result waits for its second proof; a test has few of them. */
const MOST_RESULTS = 10_000

/**
 * For tests of definitions: a run is left after every recorded step, so that the next execution must come the same way;
 * and at its end it must come to the same result twice. An execution that decides a race is not left, because it takes
 * another way through the code than one that finds the winner in the journal: both must come to the same end.
 */
export function createCheck(wanted: boolean): (run: RunRow, end: End) => End {
  const results = new Map<string, string>()
  if (!wanted) return (_run, end) => end
  return (run, end) => {
    if (end.kind !== 'returned') return end
    const encoded = encodeValue(end.value)
    const text = 'text' in encoded ? encoded.text : encoded.problem
    const before = results.get(run.id)
    if (before === undefined && results.size < MOST_RESULTS) {
      results.set(run.id, text)
      return { kind: 'suspended', suspension: { dueAt: run.startedAt, unknown: false, handedOver: true } }
    }
    results.delete(run.id)
    if (before === undefined || before === text) return end
    const error = diverged(
      'The run came to another result when it came the same way again.',
      { result: before },
      { result: text },
    )
    return { kind: 'threw', error }
  }
}
