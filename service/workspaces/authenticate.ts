import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { sendProblem } from '../http/problem.ts'
import type { Declaration } from '../openapi/declaration.ts'
import { bearerOf, hashOf, sameSecret } from './keys.ts'
import { type Caller, mayUse, type Right, rightNames, type Workspaces } from './workspaces.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Set on every route that needs an API key. */
    caller: Caller | null
  }
}

type Hook = (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>

export function decorate(server: FastifyInstance): void {
  server.decorateRequest('caller', null)
}

/** The caller of a route that declares access by an API key. */
export function callerOf(request: FastifyRequest): Caller {
  if (request.caller === null) throw new Error('The route does not declare access by an API key')
  return request.caller
}

/** The same caller, as the ledger names it: part of every identity. */
export function whoAsks(request: FastifyRequest): { readonly tenant: string; readonly caller: string } {
  const { workspaceId, caller } = callerOf(request)
  return { tenant: workspaceId, caller }
}

/** Each system is a right of its own. Null where no single right decides. */
export function rightOf({ system }: Declaration): Right | null {
  return rightNames.find((right) => right === system.name) ?? null
}

/** Checks the declared access of every route that is added after this, before anything of a request is read or claimed. */
export function enforceAccess(server: FastifyInstance, workspaces: Workspaces, operatorToken: string): void {
  const asOperator = requireOperator(operatorToken)
  server.addHook('onRoute', (route) => {
    const { declaration } = route.config ?? {}
    if (declaration === undefined || declaration === 'page' || declaration.hasSessions === true) return
    const check = (hook: Hook) => (route.onRequest = [hook, ...[route.onRequest ?? []].flat()])
    if (declaration.access === 'api key') check(requireKey(workspaces, rightOf(declaration)))
    if (declaration.access === 'operator') check(asOperator)
  })
}

function requireKey(workspaces: Workspaces, right: Right | null): Hook {
  return async (request, reply) => {
    const key = bearerOf(request.headers.authorization)
    const caller = key === null ? null : await workspaces.authenticate(key)
    if (caller === null) return unauthorised(reply, 'Send your API key as `Authorization: Bearer …`.')
    if (right !== null && !mayUse(caller, right)) {
      const detail = `The caller ${caller.caller} has no right to use ${right}.`
      return sendProblem(reply, { name: 'forbidden', detail })
    }
    request.caller = caller
    return undefined
  }
}

function requireOperator(operatorToken: string): Hook {
  const hash = hashOf(operatorToken)
  return async (request, reply) => {
    const token = bearerOf(request.headers.authorization)
    if (token !== null && sameSecret(token, hash)) return undefined
    return unauthorised(reply, 'Send the operator token as `Authorization: Bearer …`.')
  }
}

function unauthorised(reply: FastifyReply, detail: string): FastifyReply {
  reply.header('www-authenticate', 'Bearer')
  return sendProblem(reply, { name: 'unauthorized', detail })
}
