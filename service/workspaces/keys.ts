import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'

const SECRET_BYTES = 24
const ID_CHARS = 16

/** A new API key; only its hash is kept. */
export function newKey(): string {
  return `oo_${randomBytes(SECRET_BYTES).toString('base64url')}`
}

export function hashOf(key: string): string {
  return createHash('sha256').update(key).digest('hex')
}

/** Names a key without giving it away. */
export function keyIdOf(key: string): string {
  return `key_${hashOf(key).slice(0, ID_CHARS)}`
}

/** Takes as long for a wrong secret as for the right one. */
export function sameSecret(given: string, hash: string): boolean {
  return timingSafeEqual(Buffer.from(hashOf(given), 'hex'), Buffer.from(hash, 'hex'))
}

/** The token of an `Authorization: Bearer` header. */
export function bearerOf(header: string | undefined): string | null {
  return /^Bearer ([\x21-\x7e]{1,512})$/i.exec(header ?? '')?.[1] ?? null
}
