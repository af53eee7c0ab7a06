import { createHmac, timingSafeEqual } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { HOUR, MINUTE } from 'onceonly'
import { sendProblem } from '../http/problem.ts'
import type { Hook } from '../workspaces/authenticate.ts'
import type { Access, Role } from './access.ts'

/** Who is signed in. */
export interface Person {
  readonly role: Role
  /** As they named themselves: the token is shared, the audit is not. */
  readonly name: string
}

export interface Sessions {
  /** Of a cookie or of a bearer token; null for nobody. */
  personOf(request: FastifyRequest): Person | null
  /** Null when the token is none of ours. */
  signIn(reply: FastifyReply, token: string, name: string): Person | null
  signOut(reply: FastifyReply): void
  /** Before every route: from where may the console be used at all, and is the request one of its own pages? */
  readonly guard: Hook
  readonly requireViewer: Hook
  /** Wrong tokens that came from one address lately; past a bound it has to wait. */
  mayTry(request: FastifyRequest): boolean
}

/** A working day. Whoever stays longer signs in again. */
const SESSION_MS = 12 * HOUR
const COOKIE = 'onceonly_console'
const PATH = '/api/console'
/** A person mistypes a few times; a program that guesses is stopped. */
const TRIES_MOST = 10
const TRIES_WINDOW_MS = 1 * MINUTE
const ADDRESSES_MOST = 10_000

export const LOCAL_ONLY =
  'Neither ONCEONLY_OPERATOR_TOKEN nor ONCEONLY_VIEWER_TOKEN is set, so the console answers this machine only.'

export function createSessions(access: Access, secret: string): Sessions {
  const tries = new Map<string, { count: number; until: number }>()
  const sign = (text: string) => createHmac('sha256', `console ${secret}`).update(text).digest('base64url')

  /** The cookie carries all there is to know, under a signature, so that every replica of the server accepts it. */
  function read(cookie: string): Person | null {
    const [payload = '', signature = ''] = cookie.split('.')
    const expected = sign(payload)
    if (signature.length !== expected.length) return null
    if (!timingSafeEqual(Buffer.from(signature), Buffer.from(expected))) return null
    const told = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Person & { until: number }
    return told.until > Date.now() ? { role: told.role, name: told.name } : null
  }

  function personOf(request: FastifyRequest): Person | null {
    const role = access.bearerRole(request)
    if (role !== null) return { role, name: role }
    const cookie = cookieOf(request)
    return cookie === null ? null : read(cookie)
  }

  return {
    personOf,
    signIn(reply, token, name) {
      const role = access.roleOf(token)
      if (role === null) {
        countTry(tries, reply.request.ip)
        return null
      }
      const person = { role, name: name === '' ? role : name }
      const payload = Buffer.from(JSON.stringify({ ...person, until: Date.now() + SESSION_MS })).toString('base64url')
      setCookie(reply, `${payload}.${sign(payload)}`, SESSION_MS)
      return person
    },
    signOut: (reply) => setCookie(reply, '', 0),
    mayTry: ({ ip }) => {
      const tried = tries.get(ip)
      return tried === undefined || tried.until < Date.now() || tried.count < TRIES_MOST
    },
    async guard(request, reply) {
      reply.header('cache-control', 'no-store')
      if (!access.configured && !access.isLocal(request)) return refuse(reply, LOCAL_ONLY)
      if (request.method !== 'GET' && access.bearerRole(request) === null && !isOwnPage(request)) {
        return refuse(reply, 'Send the header `X-Onceonly-Console: 1`, from a page of this server.')
      }
      return undefined
    },
    async requireViewer(request, reply) {
      if (personOf(request) !== null) return undefined
      const detail = 'Sign in with the viewer or the operator token.'
      return sendProblem(reply, { status: 401, name: 'unauthorized', title: 'Unauthorized', detail, retryable: false })
    },
  }
}

export function refuse(reply: FastifyReply, detail: string): FastifyReply {
  return sendProblem(reply, { status: 403, name: 'forbidden', title: 'Forbidden', detail, retryable: false })
}

/** Forms of other sites cannot set the header, and scripts of other sites may not; browsers also say where one is from. */
function isOwnPage({ headers }: FastifyRequest): boolean {
  if (headers['x-onceonly-console'] !== '1') return false
  const site = headers['sec-fetch-site']
  if (site !== undefined && site !== 'same-origin') return false
  const { origin, host } = headers
  return origin === undefined || URL.parse(origin)?.host === host
}

function cookieOf({ headers }: FastifyRequest): string | null {
  const found = (headers.cookie ?? '').split(/;\s*/).find((part) => part.startsWith(`${COOKIE}=`))
  return found === undefined ? null : found.slice(COOKIE.length + 1)
}

function setCookie(reply: FastifyReply, value: string, ms: number): void {
  const secure = reply.request.protocol === 'https' || reply.request.headers['x-forwarded-proto'] === 'https'
  const parts = [
    `${COOKIE}=${value}`,
    `Path=${PATH}`,
    'HttpOnly',
    'SameSite=Strict',
    `Max-Age=${Math.floor(ms / 1000)}`,
  ]
  reply.header('set-cookie', [...parts, ...(secure ? ['Secure'] : [])].join('; '))
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
