import type { SqlTx } from 'onceonly'
import type { Base } from '../store.ts'
import { DEMO } from '../workspaces/demo.ts'

export interface Case {
  readonly id: string
  readonly escalatableTo: readonly string[]
}

type Query = SqlTx['query']

export async function caseById(query: Query, tenant: string, id: string): Promise<Case | null> {
  const text = 'select id, escalatable_to from cases where tenant = ? and id = ?'
  const [row] = await query<{ id: string; escalatable_to: string }>(text, [tenant, id])
  return row === undefined ? null : { id: row.id, escalatableTo: JSON.parse(row.escalatable_to) as string[] }
}

export async function putCase({ sql }: Base, tenant: string, { id, escalatableTo }: Case): Promise<void> {
  await sql.query(
    `insert into cases (tenant, id, escalatable_to) values (?, ?, ?)
     on conflict (tenant, id) do update set escalatable_to = excluded.escalatable_to`,
    [tenant, id, JSON.stringify(escalatableTo)],
  )
}

const queues = ['LEGAL_REVIEW', 'FRAUD_REVIEW', 'BILLING', 'TIER_2'] as const

/** Cases to try things with, from the first start on. An operator's changes to them stay. */
export async function makeDemoCases(base: Base): Promise<void> {
  const demo = ['CASE-100', 'CASE-101', 'CASE-102', 'CASE-103', 'CASE-104']
  for (const id of demo) {
    if ((await caseById(base.sql.query, DEMO.workspaceId, id)) !== null) continue
    const escalatableTo = id === 'CASE-101' ? queues.filter((queue) => queue !== 'LEGAL_REVIEW') : queues
    await putCase(base, DEMO.workspaceId, { id, escalatableTo })
  }
}
