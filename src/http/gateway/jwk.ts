import type { JsonWebKey, KeyObject, VerifyKeyObjectInput } from 'node:crypto'
import { constants, createPublicKey, verify } from 'node:crypto'
import { gatewayLimits } from './limits.ts'
import { isFields } from './schema.ts'

type KeyKind = 'rsa' | 'p-256' | 'ed25519'

interface Algorithm {
  readonly kind: KeyKind
  readonly hash: 'sha256' | null
  readonly options: Omit<VerifyKeyObjectInput, 'key'>
}

/** Signatures only: a table that knew shared secrets would take a public key for one. */
const algorithms: ReadonlyMap<string, Algorithm> = new Map<string, Algorithm>([
  ['RS256', { kind: 'rsa', hash: 'sha256', options: { padding: constants.RSA_PKCS1_PADDING } }],
  ['PS256', { kind: 'rsa', hash: 'sha256', options: { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 } }],
  ['ES256', { kind: 'p-256', hash: 'sha256', options: { dsaEncoding: 'ieee-p1363' } }],
  ['EdDSA', { kind: 'ed25519', hash: null, options: {} }],
])

/** A public key that tokens may be signed for. */
export interface SigningKey {
  readonly kid: string | null
  readonly kind: KeyKind
  /** The one algorithm that its owner names for it; null where any of its kind will do. */
  readonly algorithm: string | null
  readonly key: KeyObject
}

/** The members of a key that are public; the rest of it is not even looked at. */
const PUBLIC = ['kty', 'crv', 'n', 'e', 'x', 'y'] as const

/** @returns null for what is no public key that signatures of ours can be verified with */
export function readKey(jwk: unknown): SigningKey | null {
  if (!isFields(jwk)) return null
  const { kid = null, alg = null, use = 'sig', key_ops: uses = ['verify'] } = jwk
  if (use !== 'sig' || !Array.isArray(uses) || !uses.includes('verify')) return null
  if ((kid !== null && typeof kid !== 'string') || (alg !== null && typeof alg !== 'string')) return null
  const key = importKey(jwk)
  const kind = key === null ? null : kindOf(key)
  if (key === null || kind === null) return null
  if (alg !== null && algorithms.get(alg)?.kind !== kind) return null
  return { kid, kind, algorithm: alg, key }
}

function importKey(jwk: Readonly<Record<string, unknown>>): KeyObject | null {
  const members = PUBLIC.filter((name) => Object.hasOwn(jwk, name)).map((name) => [name, jwk[name]])
  try {
    return createPublicKey({ key: Object.fromEntries(members) as JsonWebKey, format: 'jwk' })
  } catch {
    return null
  }
}

function kindOf({ asymmetricKeyType: type, asymmetricKeyDetails: details = {} }: KeyObject): KeyKind | null {
  const { leastRsaBits, mostRsaBits } = gatewayLimits
  const { modulusLength = 0, namedCurve } = details
  if (type === 'rsa') return modulusLength >= leastRsaBits && modulusLength <= mostRsaBits ? 'rsa' : null
  if (type === 'ec') return namedCurve === 'prime256v1' ? 'p-256' : null
  return type === 'ed25519' ? type : null
}

/** The one key that fits. When several fit, none is used: an issuer with several keys names them. */
export function chooseKey(keys: readonly SigningKey[], kid: string | null, algorithm: string): SigningKey | null {
  const kind = algorithms.get(algorithm)?.kind
  const meant = keys.filter(
    (key) =>
      key.kind === kind && (key.algorithm === null || key.algorithm === algorithm) && (kid === null || key.kid === kid),
  )
  return meant.length === 1 ? (meant[0] ?? null) : null
}

export function knowsAlgorithm(name: string): boolean {
  return algorithms.has(name)
}

/** Never rejects. */
export function isSignedBy(
  { key }: SigningKey,
  algorithm: string,
  content: string,
  signature: Uint8Array,
): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const how = algorithms.get(algorithm)
  if (how === undefined) return Promise.resolve(false)
  verify(how.hash, Buffer.from(content), { ...how.options, key }, signature, (error, good) => {
    resolve(error === null && good)
  })
  return promise
}
