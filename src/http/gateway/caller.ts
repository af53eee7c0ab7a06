import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { digestParts, sha256Hex } from '../../ledger/core/digest.ts'
import type { Who } from '../protocol/route.ts'
import type { CallerSource, RouteRule } from './config.ts'

/** The request does not say who asks, and its route has to know. */
export class MissingCaller extends Error {
  readonly field: string

  constructor(source: CallerSource) {
    const field = 'header' in source ? source.header : 'authorization'
    const what = 'header' in source ? `the header \`${field}\`` : `a bearer token with the claim \`${source.claim}\``
    super(`The route needs ${what} to know whose key it is.`)
    this.name = 'MissingCaller'
    this.field = field
  }
}

/** What proves who somebody is must not stand in a record; its digest tells callers apart as well. */
const CREDENTIALS = ['authorization', 'cookie', 'proxy-authorization', 'x-api-key', 'api-key', 'x-auth-token']
const ANONYMOUS = 'anonymous'
const DIGEST_HEX = 32
/** A record holds more, but a name that is longer than this is none that people read. */
const LONGEST_NAME_CHARS = 128

/** Tenant and caller of a request, by what its rule says. Throws `MissingCaller`. */
export function createWho(
  rule: Pick<RouteRule, 'caller' | 'tenant'>,
  tenant: string,
): (message: IncomingMessage) => Who {
  const given = rule.tenant ?? tenant
  return (message) => ({
    tenant: typeof given === 'string' ? given : nameFrom(given, message),
    caller: rule.caller === 'shared' ? rule.caller : nameFrom(rule.caller, message),
  })
}

function nameFrom(source: CallerSource, message: IncomingMessage): string {
  const value = 'header' in source ? headerValue(message, source.header) : claimOf(message, source.claim)
  if (value === null || value.trim() === '') {
    if (source.anonymous === true) return ANONYMOUS
    throw new MissingCaller(source)
  }
  const secret = 'header' in source && CREDENTIALS.includes(source.header.toLowerCase())
  const plain = !secret && value.length <= LONGEST_NAME_CHARS && /^[\x20-\x7e]+$/.test(value)
  // A name can never be mistaken for a digest, nor for somebody without a name.
  if (plain && value !== ANONYMOUS && value !== 'shared' && !value.startsWith('sha256:')) return value
  return `sha256:${sha256Hex(value).slice(0, DIGEST_HEX)}`
}

function headerValue({ headers }: IncomingMessage, name: string): string | null {
  const value = headers[name.toLowerCase()]
  if (value === undefined) return null
  return typeof value === 'string' ? value : value.join(', ')
}

/** Read, not verified: whether the token is good is for the upstream to say. */
function claimOf({ headers }: IncomingMessage, claim: string): string | null {
  const payload = /^Bearer [^.\s]+\.([\w-]+)\.[\w-]*$/i.exec(headers.authorization ?? '')?.[1]
  if (payload === undefined) return null
  try {
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Readonly<Record<string, unknown>> | null
    const value = claims !== null && Object.hasOwn(claims, claim) ? claims[claim] : undefined
    return typeof value === 'string' || typeof value === 'number' ? String(value) : null
  } catch {
    return null
  }
}

const SALT_BYTES = 12

/** A salted digest of everything that proves who the caller is. */
export function credentialsOf(message: IncomingMessage, salt = randomBytes(SALT_BYTES).toString('hex')): string {
  return `${salt}.${digestParts([salt, ...CREDENTIALS.map((name) => headerValue(message, name))])}`
}

export function sameCredentials(message: IncomingMessage, recorded: string): boolean {
  const [salt = ''] = recorded.split('.')
  const now = Buffer.from(credentialsOf(message, salt))
  const then = Buffer.from(recorded)
  return now.length === then.length && timingSafeEqual(now, then)
}
