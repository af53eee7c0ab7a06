import { canonicalBytes } from './canonical-scan.ts'
import { lengthPrefixed, sha256Base64Url, sha256Hex } from './digest.ts'

/**
 * `v1:<shape>:<SHA-256>`: the version of the canonical form, the operation's own version of what it fingerprints, and
 * the digest. Two fingerprints say something about each other only if both versions agree.
 */

/** Raised whenever the same input would get another digest. */
const VERSION = 'v1'

/** The fingerprint of an input in canonical form (`canonicalValue`, `canonicalJson`, or `lengthPrefixed` parts). */
export function fingerprintOf(canonical: string, shape: number): string {
  return prefix(shape) + sha256Base64Url(canonical)
}

/** The fingerprint of a JSON body: `fingerprintOf(canonicalJson(json), shape)` without making the text. */
export function fingerprintJsonBytes(json: Uint8Array, shape: number): string {
  return prefix(shape) + sha256Base64Url(canonicalBytes(json))
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
