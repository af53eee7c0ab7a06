import { isOnceError } from 'onceonly'
import type { Replay, RunState } from 'onceonly/run'
import type { ServerParts } from '../../parts.ts'
import { type Engines, inside, orNull } from '../engines.ts'
import { scopeOf } from '../run-scope.ts'
import { newestSequence } from '../sequences.ts'
import type { EventSource } from '../streams.ts'
import { withSnapshots } from '../streams.ts'
import type { CampaignCommand } from './document.ts'
import { type Progress, progressOf } from './progress.ts'
import { CAMPAIGN_NAME, type CampaignInput, campaignRunId } from './run.ts'
import { type CampaignShown, type CampaignSummary, campaignOf, leadsOf } from './view.ts'

export type CampaignStarted =
  | { readonly kind: 'started' | 'unknown_sequence' | 'conflict' }
  | { readonly kind: 'unknown_leads'; readonly ids: readonly string[] }

export interface CampaignsPage {
  readonly campaigns: readonly CampaignShown[]
  readonly cursor: string | null
}

export interface CampaignsQuery {
  readonly state: RunState | null
  readonly limit: number
  readonly cursor: string | null
}

/** The campaigns of all workspaces, each seen by its own only. What is not there throws `not_found`. */
export interface Campaigns {
  /** @throws QuotaExceeded */
  start(workspaceId: string, campaignId: string, command: CampaignCommand): Promise<CampaignStarted>
  get(workspaceId: string, campaignId: string): Promise<CampaignShown>
  list(workspaceId: string, query: CampaignsQuery): Promise<CampaignsPage>
  /** Answers the state that it has ended in. */
  cancel(workspaceId: string, campaignId: string): Promise<RunState>
  /** @throws not_resolvable unless it has failed or was cancelled */
  resume(workspaceId: string, campaignId: string): Promise<CampaignShown>
  replay(workspaceId: string, campaignId: string, dryRun: boolean): Promise<Replay>
  /** What it emits, and its progress in between. */
  events(workspaceId: string, campaignId: string): Promise<EventSource>
  /** For operators, who see the campaigns of all workspaces under the ids of their runs. */
  readonly inside: {
    list(
      query: Omit<CampaignsQuery, 'state'>,
    ): Promise<{ readonly rows: readonly OperatorsCampaign[]; readonly cursor: string | null }>
    get(runId: string): Promise<OperatorsCampaign>
    events(runId: string): Promise<EventSource>
  }
}

export interface OperatorsCampaign extends CampaignShown {
  readonly runId: string
  readonly workspaceId: string
}

export function createCampaigns({
  base,
  quotas,
  engines,
}: Pick<ServerParts, 'base' | 'quotas'> & { engines: Engines }): Campaigns {
  const { engine, definitions, source } = engines

  async function shown(views: readonly CampaignSummary[]): Promise<CampaignShown[]> {
    const progress = await progressOf(
      base,
      views.map((view) => ({ id: view.runId, leads: leadsOf(view), ended: view.endedAt !== null })),
    )
    return views.map((view) => campaignOf(view, progress.get(view.runId) as Progress))
  }

  async function viewOf(workspaceId: string, campaignId: string): Promise<CampaignSummary> {
    return engines.get(workspaceId, campaignRunId(campaignId), CAMPAIGN_NAME)
  }

  async function get(workspaceId: string, campaignId: string): Promise<CampaignShown> {
    return (await shown([await viewOf(workspaceId, campaignId)]))[0] as CampaignShown
  }

  async function operators(views: readonly CampaignSummary[]): Promise<OperatorsCampaign[]> {
    const seen = await shown(views)
    return views.map(({ runId, input }, at) => {
      const { workspaceId } = input as CampaignInput
      return { ...(seen[at] as CampaignShown), runId, workspaceId }
    })
  }

  function eventsOf(view: CampaignSummary): EventSource {
    const { workspaceId, campaignId } = view.input as CampaignInput
    return withSnapshots(engine.handle(view.runId), 'progress', async () => {
      const { state, leads, progress } = await get(workspaceId, campaignId)
      return { state, leads, progress }
    })
  }

  /** @throws not_found where it is the run of something else */
  async function inAny(runId: string): Promise<CampaignSummary> {
    const view = await engine.get(runId)
    const { workspaceId, campaignId } = view.input as Partial<CampaignInput>
    return viewOf(workspaceId ?? '', view.definition === CAMPAIGN_NAME ? (campaignId ?? '') : '')
  }

  async function start(workspaceId: string, campaignId: string, command: CampaignCommand): Promise<CampaignStarted> {
    const runId = inside(workspaceId, campaignRunId(campaignId))
    const input = inputOf(workspaceId, campaignId, command)
    if ((await orNull(engine.get(runId))) === null) {
      const sequence = await newestSequence(base, workspaceId, input.sequenceId)
      if (sequence === null) return { kind: 'unknown_sequence' }
      const { leads } = input
      const unknown = 'ids' in leads ? await source.unknownOf(workspaceId, leads.ids) : []
      if (unknown.length > 0) return { kind: 'unknown_leads', ids: unknown }
      // As early as it is known; the runs are counted when they begin.
      await quotas.check(base.sql, workspaceId, { runs: 'ids' in leads ? leads.ids.length : 1 })
    }
    try {
      await engine.start(definitions.campaign, { runId, input })
      return { kind: 'started' }
    } catch (error) {
      if (isOnceError(error, 'run_conflict')) return { kind: 'conflict' }
      throw error
    }
  }

  return {
    start,
    get,
    async list(workspaceId, { state, limit, cursor }) {
      const prefix = inside(workspaceId, '')
      const page = await engine.list({
        definition: CAMPAIGN_NAME,
        scope: scopeOf(workspaceId),
        limit,
        cursor: cursor === null ? null : cursor.replace(' ', ` ${prefix}`),
        ...(state === null ? {} : { state }),
      })
      const next = page.cursor
      return { campaigns: await shown(page.runs), cursor: next === null ? null : next.replace(` ${prefix}`, ' ') }
    },
    async cancel(workspaceId, campaignId) {
      const { runId } = await viewOf(workspaceId, campaignId)
      await engine.cancel(runId)
      return (await engine.get(runId)).state
    },
    async resume(workspaceId, campaignId) {
      const { runId } = await viewOf(workspaceId, campaignId)
      await engine.resume(runId)
      return get(workspaceId, campaignId)
    },
    async replay(workspaceId, campaignId, dryRun) {
      const { runId } = await viewOf(workspaceId, campaignId)
      return engines.replay(runId, dryRun)
    },
    events: async (workspaceId, campaignId) => eventsOf(await viewOf(workspaceId, campaignId)),
    inside: {
      async list(query) {
        const page = await engine.list({ definition: CAMPAIGN_NAME, ...query })
        return { rows: await operators(page.runs), cursor: page.cursor }
      },
      get: async (runId) => (await operators([await inAny(runId)]))[0] as OperatorsCampaign,
      events: async (runId) => eventsOf(await inAny(runId)),
    },
  }
}

function inputOf(workspaceId: string, campaignId: string, command: CampaignCommand): CampaignInput {
  const { sequenceId, leadIds, filter = {}, startAt, cron, timezone = 'UTC', concurrency = null } = command
  return {
    workspaceId,
    campaignId,
    sequenceId,
    leads: leadIds === undefined ? { filter } : { ids: leadIds },
    startAt: startAt === undefined ? null : Date.parse(startAt),
    recurs: cron === undefined ? null : { cron, timezone },
    concurrency,
  }
}
