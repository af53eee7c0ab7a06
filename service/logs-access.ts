import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { keyHashOf, recordIdOf } from 'onceonly/admin'
import { hasBegun } from 'onceonly/fastify'
import type { Telemetry } from 'onceonly/telemetry'
import { refusalOf } from './http/connection.ts'
import { statusOf } from './http/problem.ts'
import type { Declaration } from './openapi/declaration.ts'
import type { RequestRecords } from './requests.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** What a system decided about a request without a key, in one word for the log. */
    decision: string | null
    /** The name of the problem that was answered. */
    problem: string | null
  }
}

/** What scripts of other origins may read of an answer, if they may read it at all. */
const EXPOSED = 'Idempotent-Replayed, Location, Preference-Applied, Retry-After, X-Request-Id'

/**
 * One line for every attempt, however it ended: a business audit counts commands, this one counts requests. Keys are
 * named by their hash; bodies, recipients and credentials stay out.
 */
export function logAccess(server: FastifyInstance, count: Telemetry['request'], requests: RequestRecords): void {
  server.decorateRequest('decision', null)
  server.decorateRequest('problem', null)

  server.addHook('onRequest', (request, reply, done) => {
    const begin = performance.now()
    // Now: a route that finds nothing hands its request over to another one.
    const asked = askedOf(request)
    reply.header('x-request-id', request.id)
    reply.header('access-control-expose-headers', EXPOSED)
    // A client that hangs up never finishes its answer; it was an attempt all the same.
    reply.raw.once('close', () => {
      const line = lineOf(asked, request, reply, performance.now() - begin)
      const { record, operation } = line
      if (record !== null && operation !== null) requests.add(request.id, { record, operation, at: Date.now() })
      // Pages and their streams are no operations: one that stays open for an hour would say nothing about latency.
      const counted = asked.declaration !== null || asked.route === null
      if (counted) count({ operation: line.operation, outcome: line.decision, durationMs: line.durationMs })
      // Probes and scrapes come every few seconds, and say nothing as long as all is well.
      if (asked.declaration?.system.name === 'health' || asked.route === '/metrics') request.log.debug(line)
      else request.log.info(line)
    })
    done()
  })

  server.addHook('onSend', (request, reply, payload, done) => {
    if (String(reply.getHeader('content-type')).startsWith('application/problem+json')) {
      request.problem = problemIn(payload)
    }
    done(null, payload)
  })
}

/** The route that was asked for. */
interface Asked {
  readonly route: string | null
  readonly declaration: Declaration | null
}

function askedOf({ routeOptions }: FastifyRequest): Asked {
  const { declaration } = routeOptions.config
  const shown = declaration === undefined || declaration === 'page' ? null : declaration
  return { route: routeOptions.url ?? null, declaration: shown }
}

function lineOf({ route, declaration }: Asked, request: FastifyRequest, reply: FastifyReply, ms: number) {
  const { caller } = request
  const key = keyOf(request)
  // A body that never came whole is refused past Fastify, which knows nothing of the answer.
  const refusal = refusalOf(reply.raw)
  const problem = refusal?.problem.name ?? request.problem
  const whole = refusal !== null || reply.raw.writableFinished
  return {
    event: 'http.access',
    method: request.method,
    route,
    status: whole ? (refusal === null ? reply.statusCode : statusOf(refusal.problem)) : null,
    durationMs: Math.round(ms * 10) / 10,
    workspace: caller?.workspaceId ?? null,
    caller: caller?.caller ?? null,
    operation: declaration?.id ?? null,
    keyHash: key === null ? null : keyHashOf(key),
    record: recordOf(declaration, request, key),
    replayed: isReplayed(reply),
    decision: refusal === null ? decisionOf(declaration, request, reply) : 'refused',
    ...(problem === null ? {} : { problem }),
    ...(whole && refusal?.hungUp !== true ? {} : { hungUp: true }),
  }
}

/** The id of the record that decides about the request; of a batch every item has one of its own. */
function recordOf(declaration: Declaration | null, { caller }: FastifyRequest, key: string | null): string | null {
  if (declaration?.repeat?.kind !== 'command' || caller === null || key === null) return null
  const { name: operation } = declaration.repeat.definition
  if (operation === undefined) return null
  return recordIdOf({ tenant: caller.workspaceId, caller: caller.caller, operation, key })
}

function isReplayed(reply: FastifyReply): boolean {
  return reply.getHeader('idempotent-replayed') === 'true'
}

/** The word for each answer of the protocol; the metrics use the same. */
const decisions: Readonly<Record<string, string>> = {
  'idempotency-key-reused': 'conflict',
  'request-in-progress': 'in_progress',
  'retry-later': 'retry_later',
  'outcome-unknown': 'unknown',
  'response-not-stored': 'not_stored',
  'key-expired': 'expired',
  'too-many-attempts': 'too_many',
  'store-unavailable': 'unavailable',
  overloaded: 'overloaded',
}

/** Null for a request that decides nothing, such as a read. */
function decisionOf(declaration: Declaration | null, request: FastifyRequest, reply: FastifyReply): string | null {
  if (isReplayed(reply)) return 'dedup_replay'
  const { problem, decision } = request
  const refused = problem === null ? undefined : decisions[problem]
  if (refused !== undefined) return refused
  if (decision !== null) return decision
  if (hasBegun(request)) return 'first'
  // A client that hung up before anything was decided has no decision.
  if (declaration?.repeat === undefined || !reply.raw.headersSent) return null
  return reply.statusCode >= 400 ? 'refused' : 'unkeyed'
}

function problemIn(payload: unknown): string | null {
  if (typeof payload !== 'string' && !(payload instanceof Uint8Array)) return null
  try {
    const { type } = JSON.parse(Buffer.from(payload).toString()) as { type?: unknown }
    return typeof type === 'string' ? type.slice(type.lastIndexOf('/') + 1) : null
  } catch {
    return null
  }
}

/** Quoted or bare, it is the same key. */
function keyOf({ headers }: FastifyRequest): string | null {
  const given = headers['idempotency-key']
  if (typeof given !== 'string') return null
  const quoted = /^"((?:[^"\\]|\\.)*)"/.exec(given.trim())?.[1]
  return quoted === undefined ? given.trim() : quoted.replace(/\\(.)/g, '$1')
}
