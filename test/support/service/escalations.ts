import assert from 'node:assert/strict'
import { until } from '../../../src/testing/until.ts'
import type { Answer, Cluster, TestServer } from './cluster.ts'

/** The result of one item of a batch. */
export interface Result {
  readonly itemKey: string
  readonly status: string
  readonly resourceId?: string
  readonly errorCode?: string
  readonly retryable?: boolean
  readonly detail?: string
}

export const resultsOf = ({ body, text }: Answer): readonly Result[] => {
  assert.ok(Array.isArray(body['results']), text)
  return body['results'] as readonly Result[]
}

export const QUEUE = 'BILLING'

export interface Item {
  readonly itemKey: string
  readonly caseId: string
  readonly targetQueue: string
  readonly reason?: string
}

/** Cases `PREFIX-000`, `PREFIX-001`, … of a workspace, made by its operator; and an item for each. */
export async function makeCases(
  server: TestServer,
  prefix: string,
  count: number,
  workspaceId = 'demo',
): Promise<readonly Item[]> {
  const items = Array.from({ length: count }, (_, at) => {
    const caseId = `${prefix}-${String(at).padStart(3, '0')}`
    return { itemKey: `item-${at}`, caseId, targetQueue: QUEUE }
  })
  for (const { caseId } of items) {
    const made = await server.admin('PUT', `/cases/${caseId}`, { workspaceId, escalatableTo: [QUEUE] })
    assert.equal(made.status, 200, made.text)
  }
  return items
}

export function batchCreate(server: TestServer, batchId: string, items: readonly object[], apiKey?: string) {
  return server.post('/case-escalations:batchCreate', { batchId, items }, apiKey === undefined ? {} : { apiKey })
}

export function escalate(server: TestServer, key: string, item: object, apiKey?: string): Promise<Answer> {
  return server.post('/case-escalations', item, { key, ...(apiKey === undefined ? {} : { apiKey }) })
}

/** What is in the tables for the cases of a prefix, past every interface: each list names the case of every row. */
async function effectsOf({ sql }: Cluster, prefix: string) {
  const cases = async (text: string) => (await sql<{ readonly id: string }>(text)).map(({ id }) => id)
  return {
    escalations: await cases(
      `select case_id as id from case_escalations where case_id like '${prefix}-%' order by case_id`,
    ),
    audit: await cases(
      `select case_id as id from escalation_audit join case_escalations on number = escalation
       where case_id like '${prefix}-%' order by case_id`,
    ),
    relayed: await cases(
      `select case_id as id from escalation_notices where case_id like '${prefix}-%' order by case_id`,
    ),
  }
}

/** One escalation, one audit row and one relayed event for each of these cases, and nothing for any other. */
export async function assertOnce(cluster: Cluster, prefix: string, caseIds: readonly string[]): Promise<void> {
  const once = caseIds.toSorted()
  await until(
    'every event is relayed',
    () => effectsOf(cluster, prefix),
    ({ relayed }) => relayed.length >= once.length,
  )
  assert.deepEqual(await effectsOf(cluster, prefix), { escalations: once, audit: once, relayed: once })
}
