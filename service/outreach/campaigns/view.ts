import type { RunView } from 'onceonly/run'
import { isoOf } from '../../messages/message.ts'
import { outside } from '../engines.ts'
import type { Progress } from './progress.ts'
import { type CampaignInput, campaignRunId } from './run.ts'

export type CampaignSummary = Omit<RunView, 'steps'>

/** The name of the campaign for its clients, by the id of its run. */
function campaignIdOf(runId: string): string {
  return outside(runId).slice(campaignRunId('').length)
}

export function leadsOf({ attributes }: CampaignSummary): number | null {
  const { leads } = attributes
  return typeof leads === 'number' ? leads : null
}

/** What clients see of a campaign. */
export function campaignOf(view: CampaignSummary, progress: Progress) {
  const { state, input, attributes, failure, dueAt, startedAt, endedAt, parent } = view
  const { campaignId, sequenceId, startAt, recurs, concurrency } = input as CampaignInput
  const { version } = attributes
  return {
    campaignId,
    state,
    sequenceId,
    version: typeof version === 'number' ? version : null,
    leads: leadsOf(view),
    progress,
    startAt: startAt === null ? null : isoOf(startAt),
    cron: recurs?.cron ?? null,
    timezone: recurs?.timezone ?? null,
    concurrency,
    partOf: parent === null ? null : campaignIdOf(parent),
    error: failure?.message ?? null,
    dueAt: dueAt === null || state !== 'sleeping' ? null : isoOf(dueAt),
    startedAt: isoOf(startedAt),
    endedAt: endedAt === null ? null : isoOf(endedAt),
  }
}

export type CampaignShown = ReturnType<typeof campaignOf>
