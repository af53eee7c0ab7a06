import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import Fastify, { type FastifyError, type FastifyInstance } from 'fastify'
import { isOnceError } from 'onceonly'
import type { Config } from './config.ts'
import { connectionLimits, refuseRepeatedHeaders, watchConnections } from './http/connection.ts'
import { sendProblem } from './http/problem.ts'
import { problemOf } from './http/refusal.ts'
import type { Base } from './store.ts'
import { decorate } from './workspaces/authenticate.ts'

/** A command is small; what is larger is refused before it is parsed. */
const bodyBytesMax = 64 * 1024

/** The part of a request that Fastify means when it refuses one by itself. */
const blamed: Readonly<Record<number, string>> = { 400: 'body', 413: 'body', 415: 'Content-Type' }

/** What every system shares: health, the page, and one form of answer for whatever goes wrong. */
export async function createServer(base: Base, { requestTimeoutMs }: Config): Promise<FastifyInstance> {
  const page = await readFile(join(import.meta.dirname, 'page.html'), 'utf8')
  const limits = connectionLimits(requestTimeoutMs)
  const server = Fastify({ bodyLimit: bodyBytesMax, forceCloseConnections: 'idle', ...limits })
  watchConnections(server.server)
  server.addHook('onRequest', refuseRepeatedHeaders)

  server.get('/', (_request, reply) => reply.type('text/html; charset=utf-8').send(page))
  server.get('/healthz', () => ({ status: 'ok' }))
  // Ready is who can reach the store; a process that only lives may be restarted for nothing.
  server.get('/readyz', async (_request, reply) => {
    try {
      await base.now()
      return { status: 'ready' }
    } catch {
      return reply.code(503).send({ status: 'waiting for the store' })
    }
  })
  decorate(server)

  server.setNotFoundHandler((request, reply) =>
    sendProblem(reply, {
      status: 404,
      name: 'not-found',
      title: 'Not found',
      detail: `There is nothing at ${request.method} ${request.url}.`,
      retryable: false,
    }),
  )
  server.setErrorHandler<FastifyError>((error, request, reply) => {
    const status = error.statusCode ?? 500
    if (status < 500) {
      const problem = { status, name: 'bad-request', title: 'Bad request', detail: error.message, retryable: false }
      const field = blamed[status]
      return sendProblem(
        reply,
        field === undefined ? problem : { ...problem, errors: [{ field, detail: error.message }] },
      )
    }
    // Before anything was begun a store that is away is only that: come back later. Afterwards nobody can tell.
    if (isOnceError(error) && !request.onceonly) return sendProblem(reply, problemOf(error))
    // The client learns that it failed; only the operator learns how.
    console.error(error)
    const detail = 'The server failed; send the same request again with the same key.'
    return sendProblem(reply, { status: 500, name: 'internal', title: 'Internal error', detail, retryable: true })
  })
  return server
}
