import { createHash, randomBytes } from 'node:crypto'
import type { HeaderList } from '../../http/protocol/exchange.ts'
import { HOUR, MINUTE } from '../../ledger/core/limits.ts'
import type { Role } from '../commands/command.ts'
import type { SessionStorage } from '../core/session-storage.ts'
import type { ConsoleAccess } from './access.ts'
import { type ConsoleAnswer, type ConsoleRequest, headerOf, problem } from './exchange.ts'

/** A signed-in viewer or operator. */
export interface Person {
  readonly role: Role
  /** As they named themselves: the token is shared, the audit is not. */
  readonly name: string
}

export interface Sessions {
  /** By a cookie or a bearer token; null without a sign-in. A wrong bearer token counts as a failed sign-in. */
  personOf(request: ConsoleRequest): Promise<Person | null>
  /** With the header that keeps them signed in; null when the token is not valid. */
  signIn(
    request: ConsoleRequest,
    token: string,
    name: string,
  ): Promise<(Person & { readonly headers: HeaderList }) | null>
  /** Ends the session everywhere, and gives the header that makes the browser forget it. */
  signOut(request: ConsoleRequest): Promise<HeaderList>
  /** Before everything: from where may the console be used at all, and is the request one of its own pages? */
  refuse(request: ConsoleRequest): ConsoleAnswer | null
  /**
   * Wrong tokens came from this address, and too many. Who has the right one is never turned away for it: others may share
   * the address, and a token of sixteen characters is not found by trying.
   */
  isGuessing(request: ConsoleRequest): boolean
}

/** A working day. */
const SESSION_MS = 12 * HOUR
const COOKIE = 'onceonly_console'
/** Everything that the pages ask is below this. */
export const CONSOLE_API = '/api/console'
const SESSION_BYTES = 32
/** Allows for typing mistakes, and stops programs that guess. */
const TRIES_MOST = 10
const TRIES_WINDOW_MS = 1 * MINUTE
const ADDRESSES_MOST = 10_000

/** @param localOnly the refusal of requests from other machines while no token is configured */
export function createSessions(access: ConsoleAccess, storage: SessionStorage, localOnly: string): Sessions {
  const tries = new Map<string, { count: number; until: number }>()

  /** The cookie is a random number: name and role are in the store, where the session can be ended. */
  async function read(cookie: string): Promise<Person | null> {
    const session = await storage.get(digestOf(cookie))
    if (session === null || session.proof !== access.proofOf(session.role)) return null
    return { role: session.role as Role, name: session.name }
  }

  return {
    async personOf(request) {
      const role = access.bearerRole(request)
      if (role !== null) return { role, name: role }
      if (access.hasBearer(request)) countTry(tries, request.clientAddress)
      const cookie = cookieOf(request)
      return cookie === null ? null : read(cookie)
    },
    async signIn(request, token, name) {
      const role = access.roleOf(token)
      const proof = role === null ? null : access.proofOf(role)
      if (role === null || proof === null) {
        countTry(tries, request.clientAddress)
        return null
      }
      const person = { role, name: name === '' ? role : name }
      const id = randomBytes(SESSION_BYTES).toString('base64url')
      await storage.put(digestOf(id), { ...person, proof }, SESSION_MS)
      return { ...person, headers: [cookie(request, id, SESSION_MS)] }
    },
    async signOut(request) {
      const id = cookieOf(request)
      if (id !== null) await storage.remove(digestOf(id))
      return [cookie(request, '', 0)]
    },
    isGuessing: ({ clientAddress }) => {
      const tried = tries.get(clientAddress)
      return tried !== undefined && tried.until >= Date.now() && tried.count > TRIES_MOST
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

const digestOf = (id: string) => createHash('sha256').update(id).digest('hex')

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
  // Still full: forget the oldest, so that memory stays bounded.
  const [oldest] = tries.keys()
  if (tries.size > ADDRESSES_MOST && oldest !== undefined) tries.delete(oldest)
}
