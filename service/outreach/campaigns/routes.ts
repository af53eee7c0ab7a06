import { createHash, randomUUID } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type InputTypes, InvalidInput } from '../../http/input.ts'
import { cursorOf } from '../../http/page.ts'
import { sendProblem } from '../../http/problem.ts'
import { protectRoutes } from '../../http/protect.ts'
import { routeOptions } from '../../openapi/route.ts'
import type { ServerParts } from '../../parts.ts'
import { callerOf } from '../../workspaces/authenticate.ts'
import { QuotaExceeded } from '../../workspaces/quotas.ts'
import { placeOf } from '../document.ts'
import { answered, sendEnded } from '../run-routes.ts'
import type { EventStreams } from '../streams.ts'
import { replayOf } from '../view.ts'
import { LIMIT_USUAL } from '../words.ts'
import type { Campaigns } from './campaigns.ts'
import {
  type CampaignCommand,
  campaignEvents,
  cancelCampaign,
  readCampaign,
  readCampaigns,
  replayCampaign,
  resumeCampaign,
  startCampaign,
} from './document.ts'
import { complaintAboutRecurrence } from './recurrence.ts'
import { campaignRunId } from './run.ts'

interface Parts extends Pick<ServerParts, 'once'> {
  readonly campaigns: Campaigns
}

const UNKNOWN_NAMED_MOST = 20

/** `POST /api/campaigns`: under a key a retry finds the campaign that the first attempt began. */
export function addCampaignStart(server: FastifyInstance, { once, campaigns }: Parts): void {
  const definition = {
    name: startCampaign.id,
    effect: 'repeatable',
    key: 'optional',
    about: {
      documentation: '/docs#campaigns.start',
      businessUniqueness: 'The id of a run is its primary key; that of a campaign is given, or follows from the key.',
      outbox: 'nothing is published',
      tests: 'test/contract/service/campaigns.test.ts',
    },
  } as const

  async function checkCommand({ body }: FastifyRequest<{ Body: CampaignCommand }>): Promise<void> {
    const { leadIds, filter, cron, timezone = 'UTC' } = body
    const errors: { field: string; detail: string }[] = []
    if ((leadIds === undefined) === (filter === undefined))
      errors.push({ field: 'leadIds', detail: 'or `filter` must be given, and only one of them' })
    const complaint = cron === undefined ? null : complaintAboutRecurrence({ cron, timezone }, Date.now())
    if (complaint !== null) errors.push({ field: 'cron', detail: complaint })
    if (cron === undefined && body.timezone !== undefined)
      errors.push({ field: 'timezone', detail: 'is for a campaign with `cron`' })
    if (errors.length > 0) throw new InvalidInput(errors)
  }

  const declaration = { ...startCampaign, repeat: { kind: 'command' as const, definition } }
  const options = { preHandler: [checkCommand], ...routeOptions(declaration) }
  const protect = protectRoutes(server.log, once)
  server.withTypeProvider<InputTypes>().post(
    '/api/campaigns',
    options,
    protect(definition, async (request, reply, context) => {
      const { workspaceId } = callerOf(request)
      const { campaignId = newId(context?.effectKey ?? randomUUID()) } = request.body
      try {
        return await answer(request, reply, campaignId, await campaigns.start(workspaceId, campaignId, request.body))
      } catch (error) {
        if (error instanceof QuotaExceeded) return sendProblem(reply, error.problem)
        throw error
      }
    }),
  )

  function answer(
    { body }: { readonly body: CampaignCommand },
    reply: FastifyReply,
    campaignId: string,
    started: Awaited<ReturnType<Campaigns['start']>>,
  ): FastifyReply {
    switch (started.kind) {
      case 'started': {
        const location = `/api/campaigns/${encodeURIComponent(campaignId)}`
        return reply.code(201).header('location', location).send({ campaignId })
      }
      case 'unknown_sequence': {
        const detail = `There is no sequence ${body.sequenceId} in this workspace.`
        const errors = [{ field: 'sequenceId', detail: 'is not a known sequence' }]
        return sendProblem(reply, { name: 'not-found', detail, errors })
      }
      case 'unknown_leads': {
        const some = started.ids.slice(0, UNKNOWN_NAMED_MOST).join(', ')
        const detail = `Of the leads, ${started.ids.length} are not in this workspace: ${some}.`
        const errors = [{ field: 'leadIds', detail: `has leads that are not known: ${some}` }]
        return sendProblem(reply, { name: 'unknown-lead', detail, errors })
      }
      case 'conflict': {
        const detail = `The id ${campaignId} was given to another campaign.`
        return sendProblem(reply, {
          name: 'run-conflict',
          detail,
          errors: [{ field: 'campaignId', detail: 'was given to another campaign' }],
        })
      }
    }
  }
}

/** The same for every attempt under a key. */
function newId(of: string): string {
  return `camp_${createHash('sha256').update(of).digest('hex').slice(0, 32)}`
}

/** What people do with a campaign. All of it may be repeated. */
export function addCampaignActions(server: FastifyInstance, { campaigns }: Pick<Parts, 'campaigns'>): void {
  const typed = server.withTypeProvider<InputTypes>()

  typed.post('/api/campaigns/:id/cancel', routeOptions(cancelCampaign), async (request, reply) => {
    const { id } = request.params
    return answered(reply, async () => {
      const state = await campaigns.cancel(callerOf(request).workspaceId, id)
      return state === 'cancelled' ? { campaignId: id, state } : sendEnded(reply, id, state)
    })
  })

  typed.post('/api/campaigns/:id/resume', routeOptions(resumeCampaign), async (request, reply) => {
    const { id } = request.params
    return answered(reply, () => campaigns.resume(callerOf(request).workspaceId, id), NOT_RESUMABLE)
  })

  typed.post('/api/campaigns/:id/replay', routeOptions(replayCampaign), async (request, reply) => {
    const { id } = request.params
    const dryRun = request.body?.dryRun ?? true
    const { workspaceId } = callerOf(request)
    return answered(reply, async () => {
      return replayOf(await campaigns.replay(workspaceId, id, dryRun), campaignRunId(id))
    })
  })
}

const NOT_RESUMABLE = 'Only a campaign that has failed or was cancelled can be resumed.'

export function addCampaignReads(
  server: FastifyInstance,
  { campaigns, streams }: Pick<Parts, 'campaigns'> & { readonly streams: EventStreams },
): void {
  const typed = server.withTypeProvider<InputTypes>()

  typed.get('/api/campaigns', routeOptions(readCampaigns), async (request) => {
    const { state = null, limit = LIMIT_USUAL, cursor: given } = request.query
    const query = { state, limit, cursor: given === undefined ? null : placeOf(given) }
    const page = await campaigns.list(callerOf(request).workspaceId, query)
    return { ...page, cursor: page.cursor === null ? null : cursorOf(page.cursor) }
  })

  typed.get('/api/campaigns/:id', routeOptions(readCampaign), async (request, reply) => {
    const { id } = request.params
    return answered(reply, () => campaigns.get(callerOf(request).workspaceId, id))
  })

  typed.get('/api/campaigns/:id/events', routeOptions(campaignEvents), async (request, reply) => {
    const { id } = request.params
    const { workspaceId } = callerOf(request)
    return answered(reply, async () =>
      streams.send(workspaceId, request, reply, await campaigns.events(workspaceId, id)),
    )
  })
}
