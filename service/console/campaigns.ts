import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { isOnceError } from 'onceonly'
import { CONSOLE_API } from 'onceonly/console'
import { sendProblem } from '../http/problem.ts'
import type { Campaigns } from '../outreach/campaigns/campaigns.ts'
import type { EventStreams } from '../outreach/streams.ts'
import { QuotaExceeded } from '../workspaces/quotas.ts'
import { withQuery } from './query.ts'

interface Parts {
  readonly campaigns: Pick<Campaigns, 'inside'>
  readonly streams: EventStreams
}

const PAGE = 100
/** Operators share the streams of one process; no workspace is called so. */
const OPERATORS = ' operators'
const page = { config: { declaration: 'page' } } as const

/** What the pages of campaigns ask. The scope has checked who is signed in: an `EventSource` can send no token. */
export function addCampaignPages(scope: FastifyInstance, { campaigns: { inside }, streams }: Parts): void {
  scope.get(
    `${CONSOLE_API}/campaigns`,
    page,
    withQuery(['cursor'], ({ cursor }, reply) => found(reply, () => inside.list({ limit: PAGE, cursor }))),
  )
  scope.get(`${CONSOLE_API}/campaigns/:id`, page, async (request, reply) =>
    found(reply, () => inside.get(idOf(request))),
  )
  scope.get(`${CONSOLE_API}/campaigns/:id/events`, page, async (request, reply) =>
    found(reply, async () => streams.send(OPERATORS, request, reply, await inside.events(idOf(request)))),
  )
}

function idOf({ params }: FastifyRequest): string {
  return (params as { readonly id: string }).id
}

async function found(reply: FastifyReply, read: () => Promise<unknown>): Promise<unknown> {
  try {
    return await read()
  } catch (error) {
    if (isOnceError(error, 'not_found') || isOnceError(error, 'bad_option')) return reply.callNotFound()
    if (error instanceof QuotaExceeded) return sendProblem(reply, error.problem)
    throw error
  }
}
