import { digestParts, sha256Hex } from '../../ledger/core/digest.ts'
import { limits } from '../../ledger/core/limits.ts'

/** Message ids are the producer's, and may be anything. As a key of the ledger they are short, visible ASCII. */
const PREFIX = 'sha256:'
const visibleAscii = /^[\x21-\x7e]+$/

/** Different ids have different keys: what had to be hashed is marked, and an id that looks so marked is hashed too. */
export function keyOf(messageId: string): string {
  const fits = messageId.length <= limits.identityPartBytes && visibleAscii.test(messageId)
  // As JSON, because halves of surrogate pairs all look the same in UTF-8.
  return fits && !messageId.startsWith(PREFIX) ? messageId : PREFIX + sha256Hex(JSON.stringify(messageId))
}

const DIGITS = 32

/**
 * From consumer and message alone, not from the record: a delivery that is rolled back leaves no record, and the next one
 * must call other systems under the same key all the same.
 */
export function inboxEffectKey(consumer: string, key: string, name?: string): string {
  const parts = ['inbox', consumer, key]
  return digestParts(name === undefined ? parts : [...parts, name]).slice(0, DIGITS)
}
