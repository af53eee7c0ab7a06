import { EFFECT_KEY_ID_DIGITS, effectKeyOf, ID_HEX_DIGITS } from '../core/identity.ts'
import type { LedgerRecord } from '../core/record.ts'

/** As what a record has an id. */
export type Mention = 'record' | 'key' | 'batch' | 'effect key' | 'derived key' | 'resource' | 'note'

const HEX = new RegExp(`^[0-9a-f]{${ID_HEX_DIGITS}}$`)

/** The beginning of the ids of records that this may be a key of; null where it is no effect key. */
export function idPrefixOf(id: string): string | null {
  return HEX.test(id) ? id.slice(0, EFFECT_KEY_ID_DIGITS) : null
}

/** Null where the record does not have the id. */
export function mentionOf(record: LedgerRecord, id: string): Mention | null {
  const { identity, incarnation, pointer, facts, history } = record
  if (record.id === id) return 'record'
  if (identity.key === id) return 'key'
  if (identity.batch === id) return 'batch'
  const prefix = idPrefixOf(id)
  if (prefix !== null && record.id.startsWith(prefix)) {
    return effectKeyOf(record.id, incarnation) === id ? 'effect key' : 'derived key'
  }
  if (pointer?.id === id) return 'resource'
  return hasText([facts, history], id) ? 'note' : null
}

function hasText(value: unknown, text: string): boolean {
  if (typeof value === 'object' && value !== null) return Object.values(value).some((each) => hasText(each, text))
  return value === text
}

/** How a member of stored JSON that is this text is written. */
export function memberText(id: string): string {
  return `:${JSON.stringify(id)}`
}
