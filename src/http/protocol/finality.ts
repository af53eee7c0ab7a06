import type { Captured } from './exchange.ts'
import { headerOf } from './exchange.ts'

/** Which answers are an outcome, and which only say that the command was not taken. */
export type Finality = 'deterministic' | 'snapshot' | 'success-only'

/**
 * `succeeded` and `refused` are recorded and replayed; `released` gives the claim back; `fault` follows the operation's effect
 * table, because a 500 does not say what happened.
 */
export type Meaning = 'succeeded' | 'refused' | 'released' | 'fault'

/** Answers about the caller or the moment, not about the command. */
const neverFinal = new Set([401, 403, 407, 408, 421, 425, 429])

export function meaningOf({ status, headers }: Pick<Captured, 'status' | 'headers'>, finality: Finality): Meaning {
  if (status < 400) return 'succeeded'
  // Whatever else is final: these say that the command was not taken.
  if (neverFinal.has(status)) return 'released'
  if (status === 503 && headerOf(headers, 'retry-after') !== null) return 'released'
  if (finality === 'snapshot') return 'refused'
  if (status >= 500) return 'fault'
  return finality === 'success-only' ? 'released' : 'refused'
}
