import { createHmac, timingSafeEqual } from 'node:crypto'
import type { HeaderList } from '../../http/protocol/exchange.ts'
import { HOUR, MINUTE } from '../../ledger/core/limits.ts'
import type { Access, Role } from './access.ts'
import { type ConsoleAnswer, type ConsoleRequest, headerOf, problem } from './exchange.ts'

/** Who is signed in. */
export interface Person {
  readonly role: Role
  /** As they named themselves: the token is shared, the audit is not. */
  readonly name: string
}

export interface Sessions {
  /** Of a cookie or of a bearer token; null for nobody. */
  personOf(request: ConsoleRequest): Person | null
  /** With the header that keeps them signed in; null when the token is none of ours. */
  signIn(request: ConsoleRequest, token: string, name: string): (Person & { readonly headers: HeaderList }) | null
  /** The header that ends it. */
  signOut(request: ConsoleRequest): HeaderList
  /** Before everything: from where may the console be used at all, and is the request one of its own pages? */
  refuse(request: ConsoleRequest): ConsoleAnswer | null
  /** Wrong tokens that came from one address lately; past a bound it has to wait. */
  mayTry(request: ConsoleRequest): boolean
}

/** A working day. Whoever stays longer signs in again. */
const SESSION_MS = 12 * HOUR
const COOKIE = 'onceonly_console'
/** Everything that the pages ask is below this. */
export const CONSOLE_API = '/api/console'
/** A person mistypes a few times; a program that guesses is stopped. */
const TRIES_MOST = 10
const TRIES_WINDOW_MS = 1 * MINUTE
const ADDRESSES_MOST = 10_000

/** @param localOnly said to whoever may not use it, because nobody chose a token */
export function createSessions(access: Access, secret: string, localOnly: string): Sessions {
  const tries = new Map<string, { count: number; until: number }>()
  const sign = (text: string) => createHmac('sha256', `console ${secret}`).update(text).digest('base64url')

  /** The cookie carries all there is to know, under a signature, so that every replica of the server accepts it. */
  function read(cookie: string): Person | null {
    const [payload = '', signature = ''] = cookie.split('.')
    const given = Buffer.from(signature)
    const expected = Buffer.from(sign(payload))
    // In bytes: as many characters may be more of them, and what is compared must be of one length.
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) return null
    const told = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Person & { until: number }
    return told.until > Date.now() ? { role: told.role, name: told.name } : null
  }

  function personOf(request: ConsoleRequest): Person | null {
    const role = access.bearerRole(request)
    if (role !== null) return { role, name: role }
    const cookie = cookieOf(request)
    return cookie === null ? null : read(cookie)
  }

  return {
    personOf,
    signIn(request, token, name) {
      const role = access.roleOf(token)
      if (role === null) {
        countTry(tries, request.clientAddress)
        return null
      }
      const person = { role, name: name === '' ? role : name }
      const payload = Buffer.from(JSON.stringify({ ...person, until: Date.now() + SESSION_MS })).toString('base64url')
      return { ...person, headers: [cookie(request, `${payload}.${sign(payload)}`, SESSION_MS)] }
    },
    signOut: (request) => [cookie(request, '', 0)],
    mayTry: ({ clientAddress }) => {
      const tried = tries.get(clientAddress)
      return tried === undefined || tried.until < Date.now() || tried.count < TRIES_MOST
    },
    refuse(request) {
      if (!access.chosen && !access.isLocal(request)) return problem('forbidden', localOnly)
      const isReading = request.method === 'GET' || request.method === 'HEAD'
      if (!isReading && access.bearerRole(request) === null && !isOwnPage(request)) {
        return problem('forbidden', 'Send the header `X-Onceonly-Console: 1`, from a page of this server.')
      }
      return null
    },
  }
}

/** Forms of other sites cannot set the header, and scripts of other sites may not; browsers also say where one is from. */
function isOwnPage(request: ConsoleRequest): boolean {
  if (headerOf(request, 'x-onceonly-console') !== '1') return false
  const site = headerOf(request, 'sec-fetch-site')
  if (site !== undefined && site !== 'same-origin') return false
  const origin = headerOf(request, 'origin')
  return origin === undefined || URL.parse(origin)?.host === headerOf(request, 'host')
}

function cookieOf(request: ConsoleRequest): string | null {
  const found = (headerOf(request, 'cookie') ?? '').split(/;\s*/).find((part) => part.startsWith(`${COOKIE}=`))
  return found === undefined ? null : found.slice(COOKIE.length + 1)
}

function cookie(request: ConsoleRequest, value: string, ms: number): HeaderList[number] {
  const isSecure = request.isEncrypted || headerOf(request, 'x-forwarded-proto') === 'https'
  const parts = [
    `${COOKIE}=${value}`,
    `Path=${CONSOLE_API}`,
    'HttpOnly',
    'SameSite=Strict',
    `Max-Age=${Math.floor(ms / 1000)}`,
  ]
  return ['set-cookie', [...parts, ...(isSecure ? ['Secure'] : [])].join('; ')]
}

function countTry(tries: Map<string, { count: number; until: number }>, address: string): void {
  const now = Date.now()
  const tried = tries.get(address)
  if (tried !== undefined && tried.until >= now) tried.count += 1
  else tries.set(address, { count: 1, until: now + TRIES_WINDOW_MS })
  if (tries.size <= ADDRESSES_MOST) return
  for (const [each, { until }] of tries) if (until < now) tries.delete(each)
  // Still full: forget the oldest, so that memory is bounded whoever comes.
  const [oldest] = tries.keys()
  if (tries.size > ADDRESSES_MOST && oldest !== undefined) tries.delete(oldest)
}
