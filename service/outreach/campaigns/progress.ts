import type { RunState } from 'onceonly/run'
import type { Base } from '../../store.ts'
import { runStates } from '../words.ts'

/** How many leads of a campaign are in each state. What has not begun is queued. */
export type Progress = Readonly<Record<RunState, number>>

interface Campaign {
  /** The run of the campaign. */
  readonly id: string
  /** Null until it is known whom the campaign is for. */
  readonly leads: number | null
  readonly ended: boolean
}

/** One read for all of them. */
export async function progressOf(
  { sql }: Base,
  campaigns: readonly Campaign[],
): Promise<ReadonlyMap<string, Progress>> {
  if (campaigns.length === 0) return new Map()
  const rows = await sql.query<{ campaign: string; state: RunState; leads: unknown }>(
    `select o.campaign, coalesce(r.state, 'queued') as state, count(*) as leads
     from outreach_runs o left join onceonly_runs r on r.id = o.run_id
     where o.campaign in (select x.id from ${sql.dialect.recordsOf({ id: 'text' })}) and o.lead_id is not null
     group by o.campaign, coalesce(r.state, 'queued')`,
    [JSON.stringify(campaigns.map(({ id }) => ({ id })))],
  )
  return new Map(
    campaigns.map(({ id, leads, ended }) => {
      const counts = Object.fromEntries(runStates.map((state) => [state, 0])) as Record<RunState, number>
      for (const row of rows) if (row.campaign === id) counts[row.state] += Number(row.leads)
      const begun = Object.values(counts).reduce((sum, count) => sum + count, 0)
      counts[ended ? 'cancelled' : 'queued'] += Math.max(0, (leads ?? 0) - begun)
      return [id, counts]
    }),
  )
}
