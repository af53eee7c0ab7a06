import { digestParts } from './digest.ts'
import { OnceError } from './errors.ts'
import { limits } from './limits.ts'

/** The address of one intended effect. Two identities that differ in any part never meet. */
export interface Identity {
  readonly tenant: string
  readonly caller: string
  readonly operation: string
  /** In a bulk request the key of the item. */
  readonly key: string
  /** The bulk request that an item belongs to; single commands have none. */
  readonly batch?: string
}

/** What a caller of a declared operation gives. The operation is its name, unless it serves many resources at once. */
export type IdentityParts = Omit<Identity, 'operation'> & { readonly operation?: string }

/** 16 bytes as 32 hexadecimal digits. */
export type RecordId = string
export type ClaimId = string

/** Always grows, store-wide: a larger fence is a later grant. */
export type Fence = number

/** Names of operations that the library keeps for itself start so. */
export const UNIQUE_PREFIX = 'unique:'

const partNames = ['tenant', 'caller', 'operation', 'key', 'batch'] as const

/** Refuses what could be stored differently than it was given: blank, oversize, NUL, half a surrogate pair. */
export function checkIdentity(identity: Identity): void {
  for (const name of partNames) {
    const part = identity[name]
    if (part !== undefined || name !== 'batch') checkIdentityPart(name, part)
  }
}

export function checkIdentityPart(name: keyof Identity, part: unknown): void {
  if (typeof part !== 'string') refuse(name, `must be a string, not ${part === null ? 'null' : typeof part}`)
  if (part.trim() === '') refuse(name, 'is blank')
  if (part.includes('\0')) refuse(name, 'contains a NUL character')
  if (!part.isWellFormed()) refuse(name, 'contains half a surrogate pair')
  // A character takes at most three bytes: almost every part is decided by its length.
  if (part.length * 3 > limits.identityPartBytes && exceedsBytes(part, limits.identityPartBytes))
    refuse(name, `is longer than ${limits.identityPartBytes} bytes`)
}

function refuse(name: string, what: string): never {
  throw new OnceError('bad_identity', `The identity's \`${name}\` ${what}.`, { details: { part: name } })
}

/** True when the UTF-8 form is longer; short strings are decided without encoding them. */
export function exceedsBytes(text: string, bytes: number): boolean {
  if (text.length * 3 <= bytes) return false
  if (text.length > bytes) return true
  return new TextEncoder().encode(text).byteLength > bytes
}

export const ID_HEX_DIGITS = 32

/** Length-prefixed parts are hashed, so no separator can be injected; the full identity is compared on a hit. */
export function recordIdOf(i: Identity): RecordId {
  return digestParts([i.tenant, i.caller, i.operation, i.key, i.batch ?? null]).slice(0, ID_HEX_DIGITS)
}

export function sameIdentity(a: Identity, b: Identity): boolean {
  return (
    a.key === b.key &&
    a.operation === b.operation &&
    a.caller === b.caller &&
    a.tenant === b.tenant &&
    a.batch === b.batch
  )
}

/** Digits of a record's id that its effect keys begin with: a key that a provider shows leads back to its record. */
export const EFFECT_KEY_ID_DIGITS = 12

/** Handed downstream: equal for every attempt of one incarnation, new after expiry or forget. */
export function effectKeyOf(id: RecordId, incarnation: Fence, name?: string): string {
  const parts = name === undefined ? ['effect', id, String(incarnation)] : ['effect', id, String(incarnation), name]
  // 80 bits of the digest stand behind the id's: enough to keep the names of one record apart.
  return id.slice(0, EFFECT_KEY_ID_DIGITS) + digestParts(parts).slice(0, ID_HEX_DIGITS - EFFECT_KEY_ID_DIGITS)
}
