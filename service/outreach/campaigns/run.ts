import { final, isOnceError } from 'onceonly'
import { defineRun, type RunContext, type RunDefinition } from 'onceonly/run'
import type { CampaignLead, OutreachInput, OutreachResult } from '../run.ts'
import { batchQueue, type Concurrency, leadQueue } from './queues.ts'
import { nextAfter, type Recurrence } from './recurrence.ts'
import type { CampaignSource, LeadFilter, LeadPage, LeadPlace } from './source.ts'

/** As it was asked for: which leads and which version it means is found out when it begins. */
export interface CampaignInput {
  readonly workspaceId: string
  readonly campaignId: string
  readonly sequenceId: string
  readonly leads: { readonly ids: readonly string[] } | { readonly filter: LeadFilter }
  /** In milliseconds since 1970; null for at once. */
  readonly startAt: number | null
  /** Null for one that runs once. */
  readonly recurs: Recurrence | null
  readonly concurrency: Concurrency | null
}

export interface BatchInput extends Pick<CampaignInput, 'workspaceId' | 'campaignId' | 'sequenceId' | 'concurrency'> {
  readonly sequenceName: string
  readonly version: number
  readonly leadIds: readonly string[]
}

/** How the runs of leads ended. */
export interface Ends {
  readonly succeeded: number
  readonly failed: number
  readonly cancelled: number
}

export interface CampaignResult extends Ends {
  /** Those that it was for; of a campaign that recurs, its rounds. */
  readonly leads: number
}

export const CAMPAIGN_NAME = 'campaign'
const BATCH_NAME = 'campaign.batch'

/** The journal of a batch is read again at the end of each of its leads: few, so that this stays cheap. */
const BATCH = 50
/** What one campaign reaches; the ids of its leads stand in its journal. */
export const LEADS_MOST = 10_000
/** A round is three lines of a journal, which has room for 50 000: more than a year of hours, or 27 years of days. */
const ROUNDS_MOST = 10_000
/** Hours: runs are removed, or a quota is raised, within a day, or a person resumes the campaign. */
const roomRetry = { attempts: 24 }

interface Parts {
  readonly source: CampaignSource
  readonly outreach: RunDefinition<OutreachInput, OutreachResult>
  /** The id of a run inside, by the workspace and the id that its clients see. */
  inside(workspaceId: string, runId: string): string
}

export interface CampaignDefinitions {
  readonly campaign: RunDefinition<CampaignInput, CampaignResult>
  readonly batch: RunDefinition<BatchInput, Ends>
}

/** The id inside of a campaign. No run of a client can have it, because of the space. */
export function campaignRunId(campaignId: string): string {
  return `campaign ${campaignId}`
}

/** A campaign is a run of batches, and each of these a run of the runs of its leads. */
export function defineCampaign({ source, outreach, inside }: Parts): CampaignDefinitions {
  const batch = defineRun(BATCH_NAME, async (run: RunContext, input: BatchInput): Promise<Ends> => {
    const { workspaceId, campaignId, sequenceId, sequenceName, version, concurrency, leadIds } = input
    await run.setAttributes({ campaign: campaignId, sequence: sequenceId })
    const idOf = (leadId: string) => inside(workspaceId, `${campaignId}.${leadId}`)
    const campaign = inside(workspaceId, campaignRunId(campaignId))
    await run.step('room', { semantics: 'transactional', retry: roomRetry }, ({ tx }) => {
      const counted = leadIds.map((leadId) => ({ runId: idOf(leadId), campaign, leadId }))
      return source.count(tx, workspaceId, [{ runId: run.runId, campaign, leadId: null }, ...counted])
    })
    const queue = leadQueue(concurrency)
    const branches = leadIds.map((leadId) => {
      const lead: CampaignLead = { workspaceId, campaignId, sequenceId, sequenceName, version, leadId }
      const child = { id: idOf(leadId), input: lead, queue, key: campaign }
      return [leadId, (branch: RunContext) => endOf(() => branch.child(outreach, child))] as const
    })
    return countOf(Object.values(await run.all('leads', Object.fromEntries(branches))))
  })

  /** Recorded page by page: every execution means the same leads. */
  async function leadsOf(run: RunContext, { workspaceId, leads }: CampaignInput): Promise<readonly string[]> {
    if ('ids' in leads) return leads.ids
    const before = run.now()
    const found: string[] = []
    for (let after: LeadPlace | null = null; ; ) {
      const from: LeadPlace | null = after
      const page: LeadPage = await run.step('leads', () => source.page(workspaceId, leads.filter, before, from))
      found.push(...page.ids)
      if (found.length > LEADS_MOST)
        throw final(new Error(`The filter finds more than ${LEADS_MOST} leads: narrow it, or make several campaigns`))
      if (page.last === null) return found
      after = page.last
    }
  }

  async function once(run: RunContext, input: CampaignInput): Promise<CampaignResult> {
    const { workspaceId, campaignId, sequenceId, concurrency } = input
    const { name, version } = await run.step('sequence', () => source.sequence(workspaceId, sequenceId))
    const leadIds = await leadsOf(run, input)
    await run.setAttributes({ leads: leadIds.length, version })
    await run.emit('begun', { leads: leadIds.length, version })
    const same = { workspaceId, campaignId, sequenceId, sequenceName: name, version, concurrency }
    const batches = chunks(leadIds, BATCH).map((some, at) => {
      const child = { input: { ...same, leadIds: some }, queue: batchQueue, key: workspaceId }
      return [`${at + 1}`, (branch: RunContext) => ended(branch, at + 1, branch.child(batch, child))] as const
    })
    const ends = Object.values(await run.all('batches', Object.fromEntries(batches)))
    return { leads: leadIds.length, ...sumOf(ends) }
  }

  async function ended(branch: RunContext, number: number, child: Promise<Ends>): Promise<Ends> {
    const ends = await child
    await branch.emit('batch', { batch: number, ...ends })
    return ends
  }

  /** A round that is due while the one before has not ended is left out: the next one is looked for at its end. */
  async function again(run: RunContext, input: CampaignInput, recurs: Recurrence): Promise<CampaignResult> {
    const ends: Ends[] = []
    for (let round = 1; round <= ROUNDS_MOST; round++) {
      const now = run.now()
      const at = nextAfter(recurs, now)
      if (at === null) break
      await run.sleep('until the next round', at - now)
      const campaignId = `${input.campaignId}.${stampOf(at)}`
      const child = { ...input, campaignId, startAt: null, recurs: null }
      const id = inside(input.workspaceId, campaignRunId(campaignId))
      const counted = await endOf(() => run.child(campaign, { id, input: child }))
      await run.emit('round', { campaignId, state: counted })
      ends.push(countOf([counted]))
    }
    return { leads: ends.length, ...sumOf(ends) }
  }

  const campaign: CampaignDefinitions['campaign'] = defineRun(
    CAMPAIGN_NAME,
    async (run: RunContext, input: CampaignInput): Promise<CampaignResult> => {
      const { campaignId, sequenceId, startAt, recurs, workspaceId } = input
      await run.setAttributes({ campaign: campaignId, sequence: sequenceId })
      await run.step('room', { semantics: 'transactional', retry: roomRetry }, ({ tx }) =>
        source.count(tx, workspaceId, [{ runId: run.runId, campaign: run.runId, leadId: null }]),
      )
      if (startAt !== null) await run.sleep('until its start', Math.max(0, startAt - run.now()))
      return recurs === null ? await once(run, input) : await again(run, input, recurs)
    },
  )
  return { campaign, batch }
}

type End = keyof Ends

/** How a child ended. What is not about the child itself, as a divergence, is thrown. */
async function endOf(child: () => Promise<unknown>): Promise<End> {
  try {
    await child()
    return 'succeeded'
  } catch (error) {
    if (!isOnceError(error, 'child_failed') && !isOnceError(error, 'run_conflict')) throw error
    const { state } = (error.details ?? {}) as { readonly state?: string }
    return state === 'cancelled' ? 'cancelled' : 'failed'
  }
}

function countOf(ends: readonly End[]): Ends {
  const of = (end: End) => ends.filter((each) => each === end).length
  return { succeeded: of('succeeded'), failed: of('failed'), cancelled: of('cancelled') }
}

function sumOf(all: readonly Ends[]): Ends {
  const of = (end: End) => all.reduce((sum, ends) => sum + ends[end], 0)
  return { succeeded: of('succeeded'), failed: of('failed'), cancelled: of('cancelled') }
}

function chunks<T>(all: readonly T[], size: number): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(all.length / size) }, (_, at) => all.slice(at * size, (at + 1) * size))
}

/** `20261116T020000Z`: fit for an address. */
function stampOf(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+|[-:]/g, '')
}
