import type { FastifyRequest } from 'fastify'
import type { Config } from '../config.ts'
import { bearerOf, hashOf, sameSecret } from '../workspaces/keys.ts'

/** A viewer looks; an operator also acts, and sees stored answers. */
export type Role = 'viewer' | 'operator'

export interface Access {
  /** Somebody chose a token; without one, only this machine is answered. */
  readonly configured: boolean
  roleOf(token: string): Role | null
  bearerRole(request: FastifyRequest): Role | null
  /** The request comes from this machine, asked for by a name of this machine, and was not passed on by a proxy. */
  isLocal(request: FastifyRequest): boolean
}

const LOOPBACK = /^(?:127\.\d+\.\d+\.\d+|::1|::ffff:127\.\d+\.\d+\.\d+)$/
/** A page that makes its own name mean 127.0.0.1 still sends that name as the host. */
const LOCAL_HOST = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])(?::\d+)?$/i
const PASSED_ON = ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via']

export function createAccess({ operatorToken: chosen, viewerToken }: Config, operatorToken: string): Access {
  const operator = hashOf(operatorToken)
  const viewer = viewerToken === null ? null : hashOf(viewerToken)
  function roleOf(token: string): Role | null {
    if (sameSecret(token, operator)) return 'operator'
    return viewer !== null && sameSecret(token, viewer) ? 'viewer' : null
  }
  return {
    configured: chosen !== null || viewerToken !== null,
    roleOf,
    bearerRole(request) {
      const token = bearerOf(request.headers.authorization)
      return token === null ? null : roleOf(token)
    },
    isLocal({ socket, headers }) {
      if (PASSED_ON.some((name) => headers[name] !== undefined)) return false
      return LOOPBACK.test(socket.remoteAddress ?? '') && LOCAL_HOST.test(headers.host ?? '')
    },
  }
}
