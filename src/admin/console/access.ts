import { createHash, timingSafeEqual } from 'node:crypto'
import { isLocal } from '../../http/protocol/local.ts'
import type { Role } from '../commands/command.ts'
import { type ConsoleRequest, headerOf } from './exchange.ts'

export interface ConsoleTokens {
  /** May act; null for none. */
  readonly operator: string | null
  /** May read and preview; null for none. */
  readonly viewer: string | null
  /** Whether the tokens are configured. Otherwise only this machine is answered. */
  readonly chosen: boolean
}

export interface ConsoleAccess {
  readonly chosen: boolean
  roleOf(token: string): Role | null
  /** What a session of this role was opened with; null where the role has no token any more. */
  proofOf(role: string): string | null
  bearerRole(request: ConsoleRequest): Role | null
  /** Whether it brings a bearer token at all. */
  hasBearer(request: ConsoleRequest): boolean
  isLocal(request: ConsoleRequest): boolean
}

/**
 * Compares tokens with the configured ones in constant time: for routes of your own beside the console.
 *
 * @example
 * ```ts
 * import { createConsoleAccess } from 'onceonly/console'
 *
 * const operator = process.env.OPERATOR_TOKEN ?? null
 * const access = createConsoleAccess({ operator, viewer: null, chosen: operator !== null })
 * console.log(access.roleOf('a guess'))
 * ```
 */
export function createConsoleAccess({ operator, viewer, chosen }: ConsoleTokens): ConsoleAccess {
  const hashes = {
    operator: operator === null ? null : hashOf(operator),
    viewer: viewer === null ? null : hashOf(viewer),
  }
  function roleOf(token: string): Role | null {
    const given = hashOf(token)
    if (hashes.operator !== null && timingSafeEqual(given, hashes.operator)) return 'operator'
    return hashes.viewer !== null && timingSafeEqual(given, hashes.viewer) ? 'viewer' : null
  }
  return {
    chosen,
    roleOf,
    proofOf(role) {
      const hash = role === 'operator' || role === 'viewer' ? hashes[role] : null
      // Once more, so that what is stored is of no use to who wants to try tokens against it quickly.
      return hash === null ? null : hashOf(hash.toString('hex')).toString('hex')
    },
    bearerRole(request) {
      const token = /^Bearer ([\x21-\x7e]{1,512})$/i.exec(headerOf(request, 'authorization') ?? '')?.[1]
      return token === undefined ? null : roleOf(token)
    },
    hasBearer: (request) => /^Bearer /i.test(headerOf(request, 'authorization') ?? ''),
    isLocal,
  }
}

const hashOf = (token: string) => createHash('sha256').update(token).digest()
