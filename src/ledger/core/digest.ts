import { hash } from 'node:crypto'
import { CanonicalError } from './canonical-rules.ts'
import { canonicalBytes } from './canonical-scan.ts'

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
  return hash('sha256', lengthPrefixed(parts), 'hex')
}

const KEY_HASH_CHARS = 16

/** Names an idempotency key in a log: enough to find its other attempts, too little to use it. */
export function keyHashOf(key: string): string {
  return sha256Hex(key).slice(0, KEY_HASH_CHARS)
}

/**
 * `v1:<shape>:<SHA-256>`: the version of the canonical form, the operation's own version of what it fingerprints, and
 * the digest. Two fingerprints say something about each other only if both versions agree.
 */

/** Raised whenever the same input would get another digest. */
const VERSION = 'v1'

/** The fingerprint of an input in canonical form (`canonicalValue`, `canonicalJson`, or `lengthPrefixed` parts). */
export function fingerprintOf(canonical: string, shape: number): string {
  return prefix(shape) + hash('sha256', canonical, 'base64url')
}

/** The fingerprint of a JSON body: `fingerprintOf(canonicalJson(json), shape)` without making the text. */
export function fingerprintJsonBytes(json: Uint8Array, shape: number): string {
  return prefix(shape) + hash('sha256', canonicalBytes(json), 'base64url')
}

/** The fingerprint of a body that is known only by its bytes and its content type. */
export function fingerprintBytes(bytes: Uint8Array, contentType: string | null, shape: number): string {
  return fingerprintOf(lengthPrefixed([contentType, sha256Hex(bytes)]), shape)
}

function prefix(shape: number): string {
  if (!Number.isSafeInteger(shape) || shape < 0) throw new RangeError('A shape is a whole number from 0.')
  return `${VERSION}:${shape}:`
}

/** The versions of a fingerprint, with their colons, or `null` if it is none. */
export function fingerprintPrefix(fingerprint: string): string | null {
  const end = fingerprint.indexOf(':', fingerprint.indexOf(':') + 1) + 1
  return /^v\d+:\d+:$/.test(fingerprint.slice(0, end)) ? fingerprint.slice(0, end) : null
}

/**
 * Whether an input is the recorded one. The caller presents a fingerprint for every version it can still compute;
 * `unverified` means that none of them has the recorded version, so that the inputs cannot be compared.
 */
export function compareFingerprints(
  recorded: string,
  presented: readonly string[],
): 'same' | 'different' | 'unverified' {
  if (presented.includes(recorded)) return 'same'
  const versions = fingerprintPrefix(recorded)
  if (versions === null) return 'unverified'
  return presented.some((fingerprint) => fingerprint.startsWith(versions)) ? 'different' : 'unverified'
}
