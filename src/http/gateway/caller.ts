import type { IncomingMessage } from 'node:http'
import { digestParts, sha256Hex } from '../../ledger/core/digest.ts'
import type { Who } from '../protocol/route.ts'
import type { CallerSource, RouteRule } from './config.ts'
import { cookieOf, credentialNames, headerValue, proofsOf } from './credentials.ts'

/** The request does not identify its caller, and its route requires it. */
export class MissingCaller extends Error {
  readonly field: string

  constructor(source: CallerSource) {
    const [field, what] = describe(source)
    super(`The route needs ${what} to know whose key it is.`)
    this.name = 'MissingCaller'
    this.field = field
  }
}

function describe(source: CallerSource): readonly [field: string, what: string] {
  if ('header' in source) return [source.header, `the header \`${source.header}\``]
  if ('cookie' in source) return ['cookie', `the cookie \`${source.cookie}\``]
  return ['authorization', `a bearer token with the claim \`${source.claim}\``]
}

/** The request names no caller, or only by a credential without a name. */
const ANONYMOUS = 'anonymous'
const UNNAMED = 'unnamed'
const DIGEST_HEX = 32
/** A record holds more, but a name that is longer than this is none that people read. */
const LONGEST_NAME_CHARS = 128

/**
 * Tenant and caller of a request, by its rule. Throws `MissingCaller`.
 *
 * @param unnamed credentials without a name are one caller, so that a renewed one meets its key; or each its own, where
 * unrelated callers may well send the same key
 */
export function createWho(
  rule: Pick<RouteRule, 'caller' | 'tenant'>,
  tenant: string,
  unnamed: 'one' | 'each',
): (message: IncomingMessage) => Who {
  const { tenant: given = tenant, caller } = rule
  const callerOf = (message: IncomingMessage): string => {
    if (caller === 'shared') return caller
    if (caller !== undefined) return nameFrom(caller, message)
    const derived = derivedCaller(message)
    return derived === UNNAMED && unnamed === 'each' ? digested(proofsOf(message)) : derived
  }
  return (message) => ({
    tenant: typeof given === 'string' ? given : nameFrom(given, message),
    caller: callerOf(message),
  })
}

function digested(parts: readonly (string | null)[]): string {
  return `sha256:${digestParts(parts).slice(0, DIGEST_HEX)}`
}

/**
 * A name that stays the same while credentials are renewed: subject of a token, id of an access key, user. All other
 * callers are one; a recorded response is replayed only to the credential that sent the first request.
 */
function derivedCaller(message: IncomingMessage): string {
  const authorization = message.headers.authorization ?? ''
  const subject = claimOf(message, 'sub')
  if (subject !== null) return named('jwt', `${claimOf(message, 'iss') ?? ''}#${subject}`)
  const accessKey = /^AWS4-[\w-]+ Credential=([^/,\s]+)\//.exec(authorization)?.[1]
  if (accessKey !== undefined) return named('aws', accessKey)
  const basic = /^Basic ([\w+/=-]+)$/i.exec(authorization)?.[1]
  if (basic !== undefined) return named('basic', Buffer.from(basic, 'base64').toString().split(':')[0] ?? '')
  return credentialNames(message).length === 0 ? ANONYMOUS : UNNAMED
}

/** Whether the request says by itself whose it is, as `derivedCaller` reads it. */
export function namesCaller(message: IncomingMessage): boolean {
  return derivedCaller(message) !== UNNAMED
}

/** With its kind in front, so that no name of one kind equals one of another, or the anonymous caller. */
function named(kind: string, name: string): string {
  const text = `${kind}:${name}`
  return isPlain(text) ? text : `${kind}:sha256:${sha256Hex(name).slice(0, DIGEST_HEX)}`
}

function nameFrom(source: CallerSource, message: IncomingMessage): string {
  const value = valueOf(source, message)
  if (value === null || value.trim() === '') {
    if (source.anonymous === true) return ANONYMOUS
    throw new MissingCaller(source)
  }
  const secret =
    'cookie' in source || ('header' in source && credentialNames(message).includes(source.header.toLowerCase()))
  const reserved = value === ANONYMOUS || value === UNNAMED || value === 'shared' || value.startsWith('sha256:')
  // A name can never be mistaken for a digest, nor for the anonymous caller.
  if (!secret && !reserved && isPlain(value)) return value
  return `sha256:${sha256Hex(value).slice(0, DIGEST_HEX)}`
}

function valueOf(source: CallerSource, message: IncomingMessage): string | null {
  if ('header' in source) return headerValue(message, source.header.toLowerCase())
  return 'cookie' in source ? cookieOf(message, source.cookie) : claimOf(message, source.claim)
}

function isPlain(name: string): boolean {
  return name.length <= LONGEST_NAME_CHARS && /^[\x20-\x7e]+$/.test(name)
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
