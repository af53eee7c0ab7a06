import { createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { bearerOf, hashOf, sameSecret } from '../../workspaces/keys.ts'

/** A signature of the body's bytes, for senders that keep the secret to themselves. */
const SIGNATURE = /^sha256=([0-9a-f]{64})$/i

/**
 * Whether a notification comes from who knows the secret: it is sent along (`Authorization: Bearer …` or
 * `X-Hook-Secret`), or the body is signed with it (`X-Hook-Signature: sha256=…`, HMAC-SHA-256 in hex). Takes as long for
 * a wrong secret as for the right one.
 */
export function knowsSecret(secret: string, headers: IncomingHttpHeaders, body: Uint8Array): boolean {
  const signed = SIGNATURE.exec(single(headers['x-hook-signature']) ?? '')?.[1]
  if (signed !== undefined) {
    const expected = createHmac('sha256', secret).update(body).digest()
    return timingSafeEqual(Buffer.from(signed, 'hex'), expected)
  }
  const given = single(headers['x-hook-secret']) ?? bearerOf(headers.authorization)
  return given !== null && sameSecret(given, hashOf(secret))
}

function single(header: string | string[] | undefined): string | null {
  return typeof header === 'string' ? header : null
}
