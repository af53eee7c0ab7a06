import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { digestParts } from '../../ledger/core/digest.ts'
import type { AnswerBinding } from '../protocol/route.ts'
import type { RouteRule } from './config.ts'
import type { Verified } from './jwt.ts'

/** The recorded digest of the first request's credentials; never sent to a client. */
export const CREDENTIALS_HEADER = 'onceonly-credentials'

/**
 * Headers that prove an identity, by the words in their names: custom ones are usually named like this. A header too many
 * costs a replay when it changes; a header too few could reveal a response to another caller.
 */
const PROOFS = new Set(['secret', 'session', 'sessionid', 'credential', 'credentials', 'jwt', 'password'])
const PROOF_ENDINGS = ['token', 'key', 'sid']

/** Word by word, and not by a pattern: clients choose the names, and could make a pattern slow. */
function proves(name: string): boolean {
  return name
    .split(/[-_]/)
    .some(
      (word) => PROOFS.has(word) || word.startsWith('auth') || PROOF_ENDINGS.some((ending) => word.endsWith(ending)),
    )
}

/** Of one request, of the browser, or against forgery: different in every retry, or no proof of identity. */
const PROVES_NOTHING = /(csrf|xsrf|idempotency|^sec-|^www-authenticate$|^proxy-authenticate$|^x-amz-content-)/

/** Names of the headers that prove the caller's identity; cookies only where nothing else does. */
export function credentialNames({ headers }: IncomingMessage): readonly string[] {
  const names: string[] = []
  for (const name in headers) if (proves(name) && !PROVES_NOTHING.test(name)) names.push(name)
  if (names.length === 0 && headers.cookie !== undefined) names.push('cookie')
  return names.sort()
}

/**
 * The same, and cookies whatever else there is: one API key or one password may be shared by all users, and only their
 * cookies distinguish them.
 */
function allCredentialNames(message: IncomingMessage): readonly string[] {
  const names = credentialNames(message)
  if (message.headers.cookie === undefined || names.includes('cookie')) return names
  return [...names, 'cookie'].sort()
}

export function headerValue({ headers }: IncomingMessage, name: string): string | null {
  const value = headers[name]
  if (value === undefined) return null
  return typeof value === 'string' ? value : value.join(', ')
}

/** The pairs of a `Cookie` header, whatever their order. */
function cookies({ headers }: IncomingMessage): string[] {
  return (headers.cookie ?? '')
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair !== '')
    .sort()
}

export function cookieOf(message: IncomingMessage, name: string): string | null {
  const found = cookies(message).find((pair) => pair.startsWith(`${name}=`))
  return found === undefined ? null : found.slice(name.length + 1)
}

const SALT_BYTES = 12

/** What counts of a request: the cookie that the rule names, or everything that looks like a proof. */
type Proofs = (message: IncomingMessage, names: readonly string[]) => readonly (string | null)[]

function proofsFor({ caller }: Pick<RouteRule, 'caller'>): Proofs {
  if (typeof caller === 'object' && 'cookie' in caller) return (message) => [cookieOf(message, caller.cookie)]
  return proofsOf
}

/** The request's values under these names, or under all that may prove the caller's identity. */
export function proofsOf(
  message: IncomingMessage,
  names: readonly string[] = allCredentialNames(message),
): readonly (string | null)[] {
  return names.flatMap((name) => [name, name === 'cookie' ? cookies(message).join(';') : headerValue(message, name)])
}

/** A request, and of whom its token speaks, where that was verified. */
export interface Presented {
  readonly message: IncomingMessage
  readonly verified: Verified | null
}

/** Ties what is recorded under a rule to the credential of the first request. */
export interface CredentialBinding extends AnswerBinding<Presented> {
  /** Salted digests: of every credential; and, for a verified token, of its subject instead of it. */
  of(presented: Presented): string
}

/** @param vouched for requests that may see the answer whatever their credential */
export function bindingFor(
  rule: Pick<RouteRule, 'caller'>,
  vouched: (message: IncomingMessage) => boolean = () => false,
): CredentialBinding {
  const proofs = proofsFor(rule)
  // A rule with a caller source has named what counts.
  const namesOf = typeof rule.caller === 'object' ? credentialNames : allCredentialNames
  const ofCredentials = (message: IncomingMessage, salt: string) =>
    digestParts([salt, ...proofs(message, namesOf(message))])
  // A token that a service presents for many users says nothing of the user: whatever else proves something counts
  // still.
  const ofSubject = (message: IncomingMessage, { issuer, subject }: Verified, salt: string) => {
    const others = credentialNames(message).filter((name) => name !== 'authorization')
    return digestParts([salt, issuer, subject, ...proofs(message, others)])
  }
  return {
    header: CREDENTIALS_HEADER,
    of({ message, verified }) {
      const salt = randomBytes(SALT_BYTES).toString('hex')
      const subject = verified === null ? [] : [ofSubject(message, verified, salt)]
      return [salt, ofCredentials(message, salt), ...subject].join('.')
    },
    same({ message, verified }, recorded) {
      if (vouched(message)) return true
      const [salt = '', credentials = '', subject = null] = recorded.split('.')
      if (isEqual(credentials, ofCredentials(message, salt))) return true
      // Both tokens were verified: one that was not may have been forged, and its answer is not the subject's.
      return subject !== null && verified !== null && isEqual(subject, ofSubject(message, verified, salt))
    },
  }
}

function isEqual(recorded: string, computed: string): boolean {
  const [one, other] = [Buffer.from(recorded), Buffer.from(computed)]
  return one.length === other.length && timingSafeEqual(one, other)
}
