/** Tokens that were seen lately, so that a copy of one is refused while it would still be valid. */
export interface Nonces {
  /** False when this one was seen before. */
  take(nonce: string, nowMs: number): boolean
}

/** Of one process, for as long as a token is good: far more than regions send each other in that time. */
const NONCES_MOST = 200_000

/** @param keptMs how long a token is valid after it was first seen */
export function createNonces(keptMs: number): Nonces {
  // Two halves, of which the older is dropped whole: nothing is ever searched for what is old.
  let young = new Set<string>()
  let old = new Set<string>()
  let turnedAtMs = Number.NEGATIVE_INFINITY
  return {
    take(nonce, nowMs) {
      if (nowMs - turnedAtMs > keptMs || young.size >= NONCES_MOST / 2) {
        old = young
        young = new Set()
        turnedAtMs = nowMs
      }
      if (young.has(nonce) || old.has(nonce)) return false
      young.add(nonce)
      return true
    },
  }
}
