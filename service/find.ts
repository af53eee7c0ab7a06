import { type Admin, type Found, recordIdOf } from 'onceonly/admin'
import { numberOf } from './escalations/escalation.ts'
import { deliveryOf } from './messages/delivery.ts'
import { type MessageRow, messageColumns } from './messages/message.ts'
import type { RequestRecords } from './requests.ts'
import type { Base } from './store.ts'

interface Parts {
  readonly base: Pick<Base, 'sql'>
  readonly admin: Pick<Admin, 'search'>
  readonly requests: RequestRecords
}

/** Of each kind; an id that has more of them is no id. */
const FOUND_MOST = 20

/** What this server has under an id beside records and runs: its messages, escalations, imports and last requests. */
export function createFind({ base: { sql }, admin, requests }: Parts): (id: string) => Promise<readonly Found[]> {
  async function messages(id: string): Promise<readonly Found[]> {
    const rows = await sql.query<MessageRow>(
      `select ${messageColumns} from messages where id = ? or effect_key = ? or provider_message_id = ? limit ${FOUND_MOST}`,
      [id, id, id],
    )
    return rows.map((row) => ({
      kind: 'message',
      id: row.id,
      about: `by ${row.channel}, of the workspace ${row.workspace_id}`,
      state: row.status,
      at: Number(row.created_at),
      ...linksOf(recordIdOf(deliveryOf(row))),
    }))
  }

  /** The line of the business audit has a key that is derived from the command, and leads to its record. */
  async function escalations(id: string): Promise<readonly Found[]> {
    const number = numberOf(id)
    if (number === null) return []
    const rows = await sql.query<{ tenant: string; case_id: string; target_queue: string; at: string; audit: string }>(
      `select e.tenant, e.case_id, e.target_queue, e.created_at as at, a.id as audit
       from case_escalations e left join escalation_audit a on a.escalation = e.number where e.number = ?
       limit ${FOUND_MOST}`,
      [number],
    )
    return await Promise.all(
      rows.map(async ({ tenant, case_id, target_queue, at, audit }) => {
        const [record] = audit === null ? [] : (await admin.search(audit, { limit: 1 })).rows
        return {
          kind: 'escalation',
          id,
          about: `${case_id} to ${target_queue}, of the workspace ${tenant}`,
          state: 'OPEN',
          at: Date.parse(at),
          ...linksOf(record?.id ?? null),
        }
      }),
    )
  }

  /** Its saga is found as such; an import is kept for longer. */
  async function imports(id: string): Promise<readonly Found[]> {
    const rows = await sql.query<{
      workspace_id: string
      project_id: string
      created_at: unknown
      state: string | null
    }>(
      `select s.workspace_id, s.project_id, s.created_at, j.state
       from import_searches s left join import_jobs j on j.search_id = s.search_id where s.search_id = ?`,
      [id],
    )
    return rows.map(({ workspace_id, project_id, created_at, state }) => ({
      kind: 'import',
      id,
      about: `into the project ${project_id}, of the workspace ${workspace_id}`,
      state: state ?? 'uploading',
      at: Number(created_at),
      page: null,
      look: null,
    }))
  }

  function asked(id: string): readonly Found[] {
    const request = requests.get(id)
    if (request === null) return []
    const { record, operation, at } = request
    return [{ kind: 'request', id, about: operation, state: null, at, ...linksOf(record) }]
  }

  return async (id) => [...asked(id), ...(await Promise.all([messages(id), escalations(id), imports(id)])).flat()]
}

function linksOf(record: string | null): Pick<Found, 'page' | 'look'> {
  if (record === null) return { page: null, look: null }
  return { page: `/records/${record}`, look: `onceonly inspect --id ${record}` }
}
