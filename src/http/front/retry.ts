import { randomInt } from 'node:crypto'
import { frontLimits } from './limits.ts'

/** When a refused client may come back: clients that were refused at once must not come back at once. */
export function retryAfterMs(): number {
  return randomInt(frontLimits.retryLeastMs, frontLimits.retryMostMs)
}
