import { randomUUID } from 'node:crypto'
import Fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify'
import { isOnceError } from 'onceonly'
import { hasBegun, onceonly } from 'onceonly/fastify'
import type { Config } from './config.ts'
import { addDocs } from './docs/routes.ts'
import { type Admission, admitCommands } from './http/admission.ts'
import { gatherBodies } from './http/blocks.ts'
import { endConnectionsAtClose } from './http/closing.ts'
import { connectionLimits, refuseRepeatedHeaders, watchConnections } from './http/connection.ts'
import { health, readiness } from './http/document.ts'
import { addUsualHeaders } from './http/headers.ts'
import { InvalidInput, inputValidator } from './http/input.ts'
import { sendInvalid, sendProblem } from './http/problem.ts'
import { addProblems } from './http/problem-routes.ts'
import type { ProblemName } from './http/problems.ts'
import { problemOf } from './http/refusal.ts'
import { decorateStoreTime } from './http/store-time.ts'
import type { Log } from './logs.ts'
import { logAccess } from './logs-access.ts'
import { logUnrouted } from './logs-unrouted.ts'
import type { Metrics } from './metrics/metrics.ts'
import { type CollectedRoute, collectRoutes } from './openapi/collect.ts'
import type { RequestRecords } from './requests.ts'
import type { Base } from './store.ts'
import { addWeb } from './web/routes.ts'
import { decorate } from './workspaces/authenticate.ts'
import { QuotaExceeded } from './workspaces/quotas.ts'

/** A command is small; what is larger is refused before it is parsed. */
const bodyBytesMax = 64 * 1024

/** In the address as it is sent: the name of an uploaded file may have 200 characters of up to 12 each. */
const paramCharsMax = 2_400

/** What Fastify refuses by itself, by its status. */
const refused: Readonly<Record<number, ProblemName>> = {
  413: 'content-too-large',
  414: 'address-too-long',
  415: 'unsupported-media-type',
}

/** The part of a request that Fastify means when it refuses one by itself. */
const blamed: Readonly<Record<number, string>> = { 400: 'body', 413: 'body', 415: 'Content-Type' }

interface Server {
  readonly server: FastifyInstance
  /** Every route of every system, as soon as it is added. */
  readonly routes: readonly CollectedRoute[]
}

/** What every system shares: logs, health, documentation, and one form of answer for whatever goes wrong. */
export async function createServer(
  base: Base,
  log: Log,
  { requestTimeoutMs }: Config,
  { telemetry }: Metrics,
  admission: Admission,
  requests: RequestRecords,
): Promise<Server> {
  const server = Fastify({
    bodyLimit: bodyBytesMax,
    forceCloseConnections: 'idle',
    loggerInstance: log,
    // The access log is our own, with what was decided.
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: () => randomUUID(),
    routerOptions: { maxParamLength: paramCharsMax },
    frameworkErrors: refuseAddress,
    // So that Ajv is not even loaded: TypeBox checks input, and an answer is plain JSON.
    schemaController: { compilersFactory: { buildValidator: neverBuilt, buildSerializer: () => () => JSON.stringify } },
    ...connectionLimits(requestTimeoutMs, log),
  })
  server.setValidatorCompiler(inputValidator)
  addUsualHeaders(server.server)
  const endSilent = watchConnections(server.server)
  server.addHook('preClose', async () => endSilent())
  endConnectionsAtClose(server)
  const routes = collectRoutes(server)
  decorate(server)
  decorateStoreTime(server)
  logAccess(server, telemetry.request, requests)
  server.addHook('onRequest', refuseRepeatedHeaders)
  admitCommands(server, admission)
  gatherBodies(server)
  // For the whole server: JSON that is not UTF-8 is refused on every route, and not read as another text.
  await server.register(onceonly)
  telemetry.observeLoad(() => admission.load)

  server.get('/healthz', { config: { declaration: health } }, () => ({ status: 'ok' }))
  // Ready is who can reach the store; a process that only lives may be restarted for nothing.
  server.get('/readyz', { config: { declaration: readiness } }, async (_request, reply) => {
    try {
      await base.now()
      return { status: 'ready' }
    } catch {
      return reply.code(503).send({ status: 'waiting for the store' })
    }
  })
  addProblems(server)
  await addDocs(server, routes)
  await addWeb(server)
  addFailures(server)
  return { server, routes }
}

function neverBuilt(): never {
  throw new Error('A route was added before its validator.')
}

function addFailures(server: FastifyInstance): void {
  server.setNotFoundHandler((request, reply) =>
    sendProblem(reply, { name: 'not-found', detail: `There is nothing at ${request.method} ${request.url}.` }),
  )
  server.setErrorHandler<FastifyError>((error, request, reply) => {
    if (error instanceof InvalidInput) return sendInvalid(reply, error.errors)
    // Under a key the route answers it itself, so that the record of the key says so.
    if (error instanceof QuotaExceeded && !hasBegun(request)) return sendProblem(reply, error.problem)
    const status = error.statusCode ?? 500
    if (status < 500) {
      const problem = { status, name: refused[status] ?? 'bad-request', detail: error.message }
      const field = blamed[status]
      return sendProblem(
        reply,
        field === undefined ? problem : { ...problem, errors: [{ field, detail: error.message }] },
      )
    }
    // Before anything was begun a store that is away is only that: come back later. Afterwards the outcome is unknown.
    if (isOnceError(error) && !hasBegun(request)) return sendProblem(reply, problemOf(error))
    // The client learns that it failed; only the operator learns how.
    request.log.error({ event: 'http.failed', err: error }, 'A request failed')
    const detail = 'The server failed; send the same request again with the same key.'
    return sendProblem(reply, { name: 'internal', detail })
  })
}

/** An address that no route can have: its escapes are broken, or a part of it is too long. */
function refuseAddress(
  { statusCode = 400, message }: FastifyError,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  const problem = { status: statusCode, name: refused[statusCode] ?? 'bad-request', detail: message }
  // No hook has seen it, so that its line of the access log is written here.
  logUnrouted(request.log, request.method, problem)
  sendProblem(reply, { ...problem, errors: [{ field: 'path', detail: message }] })
}
