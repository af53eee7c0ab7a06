import type { FastifyInstance } from 'fastify'
import type { ConsoleAccess } from 'onceonly/console'
import type { Config } from '../config.ts'
import { requestOf } from '../console/request.ts'
import { sendProblem } from '../http/problem.ts'
import type { Metrics } from './metrics.ts'

interface Parts {
  readonly config: Config
  readonly metrics: Metrics
  readonly access: ConsoleAccess
}

/** `GET /metrics`: for Prometheus, which sends a token; only a server to try things with answers this machine without. */
export function addMetrics(server: FastifyInstance, { config, metrics, access }: Parts): void {
  const isOpen = config.demo && !access.chosen
  server.get('/metrics', { config: { declaration: 'page' } }, async (request, reply) => {
    const asked = requestOf(request)
    const allowed = access.bearerRole(asked) !== null || (isOpen && access.isLocal(asked))
    if (!allowed) {
      const detail = isOpen
        ? 'Without ONCEONLY_VIEWER_TOKEN or ONCEONLY_OPERATOR_TOKEN the metrics are for this machine only.'
        : 'Send the viewer or the operator token as `Authorization: Bearer …`.'
      if (!isOpen) reply.header('www-authenticate', 'Bearer')
      return sendProblem(reply, { name: isOpen ? 'forbidden' : 'unauthorized', detail })
    }
    return reply.type(metrics.meter.contentType).send(await metrics.meter.text())
  })
}
