import type { FastifyInstance } from 'fastify'
import { createAccess } from 'onceonly/console'
import type { Config } from '../config.ts'
import { requestOf, tokensOf } from '../console/request.ts'
import { sendProblem } from '../http/problem.ts'
import type { Metrics } from './metrics.ts'

interface Parts {
  readonly config: Config
  readonly metrics: Metrics
  readonly operatorToken: string
}

/** `GET /metrics`: for Prometheus, which sends a token where one is configured. */
export function addMetrics(server: FastifyInstance, { config, metrics, operatorToken }: Parts): void {
  const access = createAccess(tokensOf(config, operatorToken))
  server.get('/metrics', { config: { declaration: 'page' } }, async (request, reply) => {
    const asked = requestOf(request)
    const allowed = access.chosen ? access.bearerRole(asked) !== null : access.isLocal(asked)
    if (!allowed) {
      const detail = access.chosen
        ? 'Send the viewer or the operator token as `Authorization: Bearer …`.'
        : 'Without ONCEONLY_VIEWER_TOKEN or ONCEONLY_OPERATOR_TOKEN the metrics are for this machine only.'
      if (access.chosen) reply.header('www-authenticate', 'Bearer')
      return sendProblem(reply, { name: access.chosen ? 'unauthorized' : 'forbidden', detail })
    }
    return reply.type(metrics.meter.contentType).send(await metrics.meter.text())
  })
}
