import { final, HOUR, notDone, type SqlTx, type SqlValue } from 'onceonly'
import { leadById } from '../../messages/leads.ts'
import { leadOf } from '../../messages/message.ts'
import type { Base } from '../../store.ts'
import { QuotaExceeded } from '../../workspaces/quotas.ts'
import type { CampaignLead, LoadedLead } from '../run.ts'
import type { CountedRun, RunCounts } from '../run-counts.ts'
import type { Lead, Sequence } from '../sequence.ts'
import { newestSequence, sequenceOf } from '../sequences.ts'

/** Which leads a campaign is for. All conditions must hold; an empty filter means all leads of the workspace. */
export interface LeadFilter {
  readonly has?: 'email' | 'phone'
  readonly createdFrom?: string
  readonly createdBefore?: string
}

export interface LeadPlace {
  readonly createdAt: number
  readonly id: string
}

export interface LeadPage {
  readonly ids: readonly string[]
  /** Null at the end. */
  readonly last: LeadPlace | null
}

/** What the runs of campaigns read and write beside their journals. */
export interface CampaignSource {
  /** Those of these ids that the workspace does not have. */
  unknownOf(workspaceId: string, ids: readonly string[]): Promise<readonly string[]>
  /** Leads that were there before a time, oldest first. */
  page(workspaceId: string, filter: LeadFilter, before: number, after: LeadPlace | null): Promise<LeadPage>
  /** @throws final where the workspace has no such sequence any more */
  sequence(workspaceId: string, id: string): Promise<Pick<Sequence, 'name' | 'version'>>
  /** What a run of a lead needs. @throws final where the lead or the version is gone */
  load(input: CampaignLead): Promise<LoadedLead>
  /** Counts runs before they begin; without room for them it is tried again later. */
  count(tx: SqlTx, workspaceId: string, runs: readonly CountedRun[]): Promise<void>
}

/** Leads of one page. Their ids stand in the journal of the campaign. */
const PAGE = 1_000
/** Runs are removed, or a quota is raised, within hours rather than seconds. */
const QUOTA_MS = 1 * HOUR

export function createCampaignSource(base: Base, counts: Pick<RunCounts, 'addAll'>): CampaignSource {
  const { sql } = base
  return {
    async unknownOf(workspaceId, ids) {
      const known = new Set<string>()
      for (let at = 0; at < ids.length; at += PAGE) {
        const records = JSON.stringify(ids.slice(at, at + PAGE).map((id) => ({ id })))
        const rows = await sql.query<{ id: string }>(
          `select id from leads where workspace_id = ? and id in (select x.id from ${sql.dialect.recordsOf({ id: 'text' })})`,
          [workspaceId, records],
        )
        for (const { id } of rows) known.add(id)
      }
      return ids.filter((id) => !known.has(id))
    },
    async page(workspaceId, { has, createdFrom, createdBefore }, before, after) {
      const end = createdBefore === undefined ? before : Math.min(before, Date.parse(createdBefore))
      const conditions = ['workspace_id = ?', 'created_at < ?']
      const values: SqlValue[] = [workspaceId, end]
      if (has !== undefined) conditions.push(`${has} is not null`)
      if (createdFrom !== undefined) {
        conditions.push('created_at >= ?')
        values.push(Date.parse(createdFrom))
      }
      if (after !== null) {
        conditions.push('(created_at, id) > (?, ?)')
        values.push(after.createdAt, after.id)
      }
      const rows = await sql.query<{ id: string; created_at: unknown }>(
        `select id, created_at from leads where ${conditions.join(' and ')} order by created_at, id limit ${PAGE}`,
        values,
      )
      const last = rows.length < PAGE ? undefined : rows.at(-1)
      const place = last === undefined ? null : { createdAt: Number(last.created_at), id: last.id }
      return { ids: rows.map(({ id }) => id), last: place }
    },
    async sequence(workspaceId, id) {
      const found = await newestSequence(base, workspaceId, id)
      if (found === null) throw final(new Error(`The sequence ${id} is not there any more`))
      return { name: found.name, version: found.version }
    },
    async load({ workspaceId, sequenceId, version, leadId }) {
      const sequence = await sequenceOf(base, workspaceId, sequenceId, version)
      if (sequence === null)
        throw final(new Error(`Version ${version} of the sequence ${sequenceId} is not kept any more`))
      const row = await leadById(sql, workspaceId, leadId)
      if (row === null) throw final(new Error(`The lead ${leadId} is not there any more`))
      const { _id, workspaceId: _workspace, ...fields } = leadOf(row)
      const lead: Lead = { id: _id, ...fields }
      return { lead, steps: sequence.steps }
    },
    async count(tx, workspaceId, runs) {
      try {
        await counts.addAll(tx, workspaceId, runs)
      } catch (error) {
        if (error instanceof QuotaExceeded) throw notDone(error, { retryAfterMs: QUOTA_MS })
        throw error
      }
    },
  }
}
