import { type LimitConfig, limitSettings } from '../config-limits.ts'
import type { Base } from '../store.ts'
import { type BusyQuota, busyQuotas, type QuotaName, type Quotas, quotaTable } from './quotas.ts'

/** How much a workspace has of one quota. */
export interface QuotaShown {
  readonly quota: QuotaName
  /** In words: `messages`. */
  readonly what: string
  readonly used: number
  readonly limit: number
  /** What changes the limit, of every workspace. */
  readonly setting: string
}

export interface WorkspaceUse {
  readonly workspaceId: string
  readonly name: string
  /** The fullest first. */
  readonly quotas: readonly QuotaShown[]
}

export interface UsePage {
  readonly rows: readonly WorkspaceUse[]
  readonly cursor: string | null
}

export interface UseQuery {
  /** Only this workspace. */
  readonly workspaceId: string | null
  readonly limit: number
  readonly cursor: string | null
}

interface Parts {
  readonly base: Pick<Base, 'sql'>
  readonly quotas: Pick<Quotas, 'underWay'>
  readonly config: LimitConfig
}

const names = Object.keys(quotaTable) as QuotaName[]

function isBusy(quota: QuotaName): quota is BusyQuota {
  return (busyQuotas as readonly string[]).includes(quota)
}

/** What the workspaces use of their quotas, in the order of their ids: for operators. */
export async function readUse({ base: { sql }, quotas, config }: Parts, query: UseQuery): Promise<UsePage> {
  const { workspaceId: only, limit, cursor } = query
  const [condition, value] = only === null ? ['id > ?', cursor ?? ''] : ['id = ?', only]
  const workspaces = await sql.query<{ readonly id: string; readonly name: string }>(
    `select id, name from workspaces where ${condition} order by id limit ?`,
    [value, limit],
  )
  const ids = workspaces.map(({ id }) => id)
  const counts = ids.length === 0 ? [] : await countsOf(sql, ids)
  const usedOf = new Map(counts.map(({ id, quota, used }) => [`${quota} ${id}`, Number(used)]))
  const rows = workspaces.map(({ id, name }) => ({
    workspaceId: id,
    name,
    quotas: names
      .map((quota): QuotaShown => {
        const [limitOf, what] = quotaTable[quota]
        const used = isBusy(quota) ? quotas.underWay(quota, id) : (usedOf.get(`${quota} ${id}`) ?? 0)
        return { quota, what, used, limit: config[limitOf], setting: limitSettings[limitOf].variable }
      })
      .toSorted((one, other) => other.used / other.limit - one.used / one.limit),
  }))
  return { rows, cursor: rows.length === limit ? (ids.at(-1) ?? null) : null }
}

interface Count {
  readonly id: string
  readonly quota: string
  readonly used: unknown
}

function countsOf(sql: Base['sql'], ids: readonly string[]): Promise<readonly Count[]> {
  const places = ids.map(() => '?').join(', ')
  return sql.query<Count>(
    `select workspace_id as id, quota, sum(used) as used from workspace_usage
      where workspace_id in (${places}) group by workspace_id, quota`,
    [...ids],
  )
}
