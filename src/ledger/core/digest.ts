import { hash } from 'node:crypto'
import { CanonicalError } from './canonical-rules.ts'

/** SHA-256 in hex; a string is hashed as UTF-8. One call, because a hash object costs more than hashing a kilobyte. */
export function sha256Hex(data: string | Uint8Array): string {
  return hash('sha256', data, 'hex')
}

/** SHA-256 in 43 characters instead of 64, for what is stored with every record. */
export function sha256Base64Url(data: string | Uint8Array): string {
  return hash('sha256', data, 'base64url')
}

/**
 * One text for a list of parts, different for different lists: each part is its length in UTF-16 code units, a colon,
 * and itself; a part that is missing is `-`. Lone surrogates are refused, because all of them look the same in UTF-8.
 * No such text is JSON, so that parts are never mistaken for a canonical body.
 */
export function lengthPrefixed(parts: readonly (string | null)[]): string {
  let text = ''
  for (let index = 0; index < parts.length; index++) {
    const part = parts[index] as string | null
    if (part === null) text += '-'
    else if (part.isWellFormed()) text += `${part.length}:${part}`
    else throw new CanonicalError('lone_surrogate', { path: `$[${index}]` })
  }
  return text
}

/** The digest of a list of parts, in hex. */
export function digestParts(parts: readonly (string | null)[]): string {
  return sha256Hex(lengthPrefixed(parts))
}

const KEY_HASH_CHARS = 16

/** Names an idempotency key in a log: enough to find its other attempts, too little to use it. */
export function keyHashOf(key: string): string {
  return sha256Hex(key).slice(0, KEY_HASH_CHARS)
}
