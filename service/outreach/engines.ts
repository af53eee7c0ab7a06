import { AsyncLocalStorage } from 'node:async_hooks'
import { isOnceError, OnceError } from 'onceonly'
import { createEngine, type Engine, type Replay, type RunDefinition, type RunView } from 'onceonly/run'
import type { CallRate } from '../config-rates.ts'
import type { Channels } from '../messages/channels/index.ts'
import type { Delivery } from '../messages/deliver.ts'
import type { Sender } from '../messages/send.ts'
import type { ServerParts } from '../parts.ts'
import { campaignQueues } from './campaigns/queues.ts'
import { type CampaignDefinitions, defineCampaign } from './campaigns/run.ts'
import { type CampaignSource, createCampaignSource } from './campaigns/source.ts'
import { defineOutreach, type OutreachInput, type OutreachResult } from './run.ts'
import { createRunCounts, type RunCounts } from './run-counts.ts'
import { scopeOf } from './run-scope.ts'
import { createMessageChannel, type MessageChannel } from './send.ts'
import { newestSequence } from './sequences.ts'
import type { Step } from './step.ts'
import { createWebhook } from './webhook.ts'

export interface Definitions extends CampaignDefinitions {
  readonly outreach: RunDefinition<OutreachInput, OutreachResult>
}

/** The engine of all runs of this system, and what it is made of. */
export interface Engines {
  readonly engine: Engine
  readonly definitions: Definitions
  readonly counts: RunCounts
  readonly source: CampaignSource
  readonly messages: MessageChannel
  /** By the id inside, against the newest version of the run's sequence. */
  replay(id: string, dryRun: boolean): Promise<Replay>
  /** The run of a workspace, if it is of this definition. @throws not_found */
  get(workspaceId: string, runId: string, definition: string): Promise<RunView>
  stop(): Promise<void>
}

export interface EngineParts extends Pick<ServerParts, 'base' | 'once' | 'quotas' | 'watch'> {
  readonly sender: Sender
  readonly delivery: Delivery
  readonly channels: Channels
  readonly sendTimeoutMs: number
  /** Hosts that webhooks may reach although they are not public. */
  readonly webhookHosts: readonly string[]
  readonly webhookRate: CallRate | null
  /** The slot of a call could not be given back, and is free by itself later. */
  slotKept(host: string, error: unknown): void
}

/** Beyond what a provider may take: the guard waits for a twin, and the store for its turn. */
const STEP_EXTRA_MS = 30_000

export async function createEngines(parts: EngineParts): Promise<Engines> {
  const { base, once, sender, delivery, channels, sendTimeoutMs, webhookHosts, webhookRate, slotKept, quotas, watch } =
    parts
  const counts = createRunCounts(base, quotas)
  const source = createCampaignSource(base, counts)
  const messages = createMessageChannel({ base, sender, delivery, channels })
  const webhook = createWebhook({ base, webhookHosts, rate: webhookRate, sendTimeoutMs, failed: slotKept })
  const by = { messages, webhook, stepTimeoutMs: sendTimeoutMs + STEP_EXTRA_MS, load: source.load }

  function define(stepsOf: Parameters<typeof defineOutreach>[1]): Definitions {
    const outreach = defineOutreach(by, stepsOf)
    return { outreach, ...defineCampaign({ source, outreach, inside }) }
  }

  const definitions = define(({ steps }) => steps)
  const engine = await createEngine({
    ledger: once,
    runs: Object.values(definitions),
    queues: campaignQueues,
    on: watch.run,
  })
  // An engine of its own drives nothing: it only reads what the other one did, with the steps of today.
  const today = new AsyncLocalStorage<readonly Step[] | null>()
  const replayed = define(({ steps }) => today.getStore() ?? steps)
  const replayer = await createEngine({
    ledger: once,
    runs: Object.values(replayed),
    queues: campaignQueues,
    work: false,
  })

  return {
    engine,
    definitions,
    counts,
    source,
    messages,
    async replay(id, dryRun) {
      const { workspaceId, sequenceId } = (await engine.get(id)).input as OutreachInput
      const newest = await newestSequence(base, workspaceId, sequenceId)
      return today.run(newest?.steps ?? null, () => replayer.replay(id, { dryRun }))
    },
    async get(workspaceId, runId, definition) {
      const view = await engine.get(inside(workspaceId, runId))
      if (view.definition === definition) return view
      throw new OnceError('not_found', `There is no run ${runId}.`, { next: 'Check the id.' })
    },
    async stop() {
      await replayer.stop()
      await engine.stop()
    },
  }
}

/** Workspaces may choose the same ids. */
export function inside(workspaceId: string, runId: string): string {
  return `${scopeOf(workspaceId)}/${runId}`
}

export function outside(id: string): string {
  return id.slice(id.indexOf('/') + 1)
}

export async function orNull<T>(found: Promise<T>): Promise<T | null> {
  try {
    return await found
  } catch (error) {
    if (isOnceError(error, 'not_found')) return null
    throw error
  }
}
