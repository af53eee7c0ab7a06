import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Admin, Finding, Found, OwnData } from 'onceonly/admin'
import { CONSOLE_API, type ConsoleAnswer, createConsole } from 'onceonly/console'
import type { Description } from 'onceonly/saga'
import type { Rooms } from '../chat/index.ts'
import { DELIVERY_OPERATION } from '../messages/delivery.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { type CollectedRoute, servedRoutes } from '../openapi/collect.ts'
import type { Campaigns } from '../outreach/campaigns/campaigns.ts'
import type { Runs } from '../outreach/runs.ts'
import type { EventStreams } from '../outreach/streams.ts'
import type { ServerParts } from '../parts.ts'
import { GUARD_NAME } from '../watch.ts'
import { retentionRows } from '../workspaces/retention-rows.ts'
import { addCampaignPages } from './campaigns.ts'
import { act, signIn, signOut } from './document.ts'
import { addQuotaPage } from './quotas.ts'
import { requestOf, tokensOf } from './request.ts'

interface Parts extends Pick<ServerParts, 'base' | 'config' | 'operatorToken' | 'quotas'> {
  readonly admin: Admin
  readonly metrics: Metrics
  readonly routes: readonly CollectedRoute[]
  readonly runs: Runs
  readonly campaigns: Campaigns
  readonly streams: EventStreams
  readonly rooms: Rooms
  sagas(): readonly Description[]
  /** What the systems know, beside what the store says. */
  findings(): Promise<readonly Finding[]>
  /** What the systems keep of workspaces and persons. */
  readonly own: OwnData
  /** What the systems have under an id. */
  find(id: string): Promise<readonly Found[]>
}

const LOCAL_ONLY =
  'Neither ONCEONLY_OPERATOR_TOKEN nor ONCEONLY_VIEWER_TOKEN is set, so the console answers this machine only.'

/** `/api/console/*`: what the pages of the console ask and do. */
export function addConsole(server: FastifyInstance, parts: Parts): { stop(): void } {
  const { admin, config, metrics, operatorToken, routes, runs, campaigns, streams, rooms, sagas, findings, find, own } =
    parts
  const console = createConsole({
    admin: { ...admin, doctor: async () => [...(await admin.doctor()), ...(await findings())] },
    meter: metrics.meter,
    figures: metrics.telemetry.figures,
    tokens: tokensOf(config, operatorToken),
    localOnly: LOCAL_ONLY,
    guards: [`guard.${GUARD_NAME}`],
    internals: [DELIVERY_OPERATION, 'imports.read'],
    routes: () => servedRoutes(routes),
    sagas,
    rooms,
    find,
    own,
    retention: () => retentionRows(config),
    runs: runs.inside,
    pages: ['campaigns'],
    onAction: ({ action, by }) => server.log.info({ event: 'operator.action', action, by }),
    onError: (error) => server.log.warn({ event: 'console.live_failed', err: error }),
  })

  server.register(async (scope) => {
    // Before the body is read: refused requests cost no memory.
    scope.addHook('onRequest', async (request, reply) => {
      const refused = await console.refuse(requestOf(request))
      return refused === null ? undefined : send(reply, refused)
    })
    const answer = async (request: FastifyRequest, reply: FastifyReply) =>
      send(reply, await console.answer(requestOf(request)))
    addCampaignPages(scope, { campaigns, streams })
    addQuotaPage(scope, parts)
    scope.get(`${CONSOLE_API}/*`, { config: { declaration: 'page' } }, answer)
    scope.post(`${CONSOLE_API}/session`, { config: { declaration: signIn } }, answer)
    scope.delete(`${CONSOLE_API}/session`, { config: { declaration: signOut } }, answer)
    scope.post(`${CONSOLE_API}/actions`, { config: { declaration: act } }, answer)
  })
  return console
}

function send(reply: FastifyReply, answer: ConsoleAnswer): FastifyReply {
  if (answer.kind === 'stream') {
    reply.hijack()
    answer.attach(reply.raw)
    return reply
  }
  const { status, headers, body } = answer.answer
  for (const [name, value] of headers) reply.header(name, value)
  return reply.code(status).send(status === 204 ? undefined : Buffer.from(body))
}
