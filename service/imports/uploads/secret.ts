import { createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { bearerOf, hashOf, sameSecret } from '../../workspaces/keys.ts'

/** A signature of the body's bytes, for senders that keep the secret to themselves. */
const SIGNATURE = /^sha256=([0-9a-f]{64})$/i

/**
 * Whether a notification comes from who knows the secret: it is sent along (`Authorization: Bearer …`,
 * `X-Hook-Secret`, or as the password of `Authorization: Basic …`, which is all that SNS can send), or the body is signed
 * with it (`X-Hook-Signature: sha256=…`, HMAC-SHA-256 in hex). Takes as long for a wrong secret as for the right one.
 */
export function knowsSecret(secret: string, headers: IncomingHttpHeaders, body: Uint8Array): boolean {
  const signed = SIGNATURE.exec(single(headers['x-hook-signature']) ?? '')?.[1]
  if (signed !== undefined) {
    const expected = createHmac('sha256', secret).update(body).digest()
    return timingSafeEqual(Buffer.from(signed, 'hex'), expected)
  }
  const given = single(headers['x-hook-secret']) ?? bearerOf(headers.authorization) ?? passwordOf(headers.authorization)
  return given !== null && sameSecret(given, hashOf(secret))
}

/** Of `Authorization: Basic`, whatever the user is called. */
function passwordOf(header: string | undefined): string | null {
  const encoded = /^Basic ([A-Za-z0-9+/]{1,1024}={0,2})$/i.exec(header ?? '')?.[1]
  if (encoded === undefined) return null
  const [, password] = /^[^:]*:(.*)$/s.exec(Buffer.from(encoded, 'base64').toString()) ?? []
  return password ?? null
}

function single(header: string | string[] | undefined): string | null {
  return typeof header === 'string' ? header : null
}
