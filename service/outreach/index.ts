import type { FastifyInstance } from 'fastify'
import type { Messages } from '../messages/index.ts'
import type { ServerParts } from '../parts.ts'
import type { Sweep } from '../workspaces/retention.ts'
import { type Campaigns, createCampaigns } from './campaigns/campaigns.ts'
import { addCampaignActions, addCampaignReads, addCampaignStart } from './campaigns/routes.ts'
import { createEngines } from './engines.ts'
import { addRunActions, addRunReads, allowEmptyBodies } from './run-routes.ts'
import { createRuns, type Runs } from './runs.ts'
import { addSequences, addStarts } from './sequence-routes.ts'
import { versionSweep } from './sequences.ts'
import { createEventStreams, type EventStreams } from './streams.ts'
import { webhookSlotSweep } from './webhook.ts'

interface Parts extends Pick<ServerParts, 'once' | 'base' | 'config' | 'quotas' | 'watch'> {
  readonly messages: Messages
}

export interface Outreach {
  readonly runs: Runs
  readonly campaigns: Campaigns
  readonly streams: EventStreams
  readonly sweeps: readonly Sweep[]
  stop(): Promise<void>
}

/** The outreach system: sequences as data, and durable runs of them that send through the messages system. */
export async function addOutreach(server: FastifyInstance, parts: Parts): Promise<Outreach> {
  const { once, base, messages, config, quotas, watch } = parts
  const { sender, delivery, channels } = messages
  const { sendTimeoutMs, webhookHosts, outreachWebhookRate: webhookRate } = config
  const engines = await createEngines({
    base,
    once,
    sender,
    delivery,
    channels,
    sendTimeoutMs,
    webhookHosts,
    webhookRate,
    slotKept: (host, err) => server.log.warn({ event: 'outreach.slot_kept', host, err }, 'slot is given back later'),
    quotas,
    watch,
  })
  const runs = createRuns({ base, engines })
  const campaigns = createCampaigns({ base, quotas, engines })
  const streams = createEventStreams({
    quotas,
    onError: (err) => server.log.warn({ event: 'outreach.events_failed', err }, 'stream of events ended'),
  })
  // Scopes of their own: in one bodies are kept as bytes, in the other they may be empty.
  server.register(async (scope) => {
    addSequences(scope, { once, base, quotas, webhookHosts })
    addCampaignStart(scope, { once, campaigns })
  })
  server.register(async (scope) => {
    allowEmptyBodies(scope)
    addRunActions(scope, { runs })
    addCampaignActions(scope, { campaigns })
  })
  addStarts(server, { base, runs })
  addRunReads(server, { runs, streams })
  addCampaignReads(server, { campaigns, streams })
  return {
    runs,
    campaigns,
    streams,
    sweeps: [versionSweep(base), runs.sweep, webhookSlotSweep(base)],
    stop: () => engines.stop(),
  }
}
