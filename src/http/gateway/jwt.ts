import type { SigningKey } from './jwk.ts'
import { isSignedBy, knowsAlgorithm } from './jwk.ts'
import { gatewayLimits } from './limits.ts'
import { isFields } from './schema.ts'

/** Of whom a token that was verified speaks. */
export interface Verified {
  readonly issuer: string
  readonly subject: string
}

export interface Expected {
  readonly issuer: string
  /** Null, where tokens of that issuer have none. */
  readonly audiences: readonly string[] | null
}

/** The key of this name for this algorithm, or null. */
export type FindKey = (kid: string | null, algorithm: string) => Promise<SigningKey | null>

const SECOND_MS = 1_000
const BEARER = /^Bearer ([\w-]+)\.([\w-]+)\.([\w-]+)$/i

/**
 * The subject of a bearer token with a good signature, issuer, audience and times. Null for everything else: a token that
 * cannot be verified is no error here.
 */
export async function verifyBearer(
  authorization: string,
  findKey: FindKey,
  expected: Expected,
  nowMs: number,
): Promise<Verified | null> {
  const [, head = '', payload = '', signature = ''] = BEARER.exec(authorization) ?? []
  const header = readPart(head)
  const claims = readPart(payload)
  if (header === null || claims === null) return null
  // Before any key is looked for, so that foreign tokens cause no requests for keys.
  const subject = claimed(claims, expected, nowMs)
  if (subject === null) return null
  const { alg, kid = null } = header
  // An extension that must be understood is not.
  if (typeof alg !== 'string' || !knowsAlgorithm(alg) || 'crit' in header) return null
  if (kid !== null && typeof kid !== 'string') return null
  const key = await findKey(kid, alg)
  if (key === null) return null
  const signed = await isSignedBy(key, alg, `${head}.${payload}`, Buffer.from(signature, 'base64url'))
  return signed ? { issuer: expected.issuer, subject } : null
}

function claimed(
  { iss, sub, aud, exp, nbf = 0, cnf }: Readonly<Record<string, unknown>>,
  { issuer, audiences }: Expected,
  nowMs: number,
): string | null {
  if (iss !== issuer || typeof sub !== 'string' || sub === '') return null
  if (audiences !== null && ![aud].flat().some((each) => typeof each === 'string' && audiences.includes(each))) {
    return null
  }
  // It is good together with a key of its holder only, of which we see nothing.
  if (cnf !== undefined) return null
  // A token without an expiry could be used forever after its caller lost all rights.
  if (!isTime(exp) || exp * SECOND_MS <= nowMs) return null
  return isTime(nbf) && nbf * SECOND_MS <= nowMs + gatewayLimits.clockSkewMs ? sub : null
}

function isTime(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}

/** Without a prototype, so that no name is found that was not sent. */
function readPart(part: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString())
    return isFields(value) ? Object.assign(Object.create(null), value) : null
  } catch {
    return null
  }
}
