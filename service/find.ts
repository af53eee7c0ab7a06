import { type Admin, type Found, recordIdOf } from 'onceonly/admin'
import { numberOf } from './escalations/escalation.ts'
import { SEARCH_IMPORT } from './imports/saga.ts'
import { deliveryOf } from './messages/delivery.ts'
import { type MessageRow, messageColumns } from './messages/message.ts'
import { CAMPAIGN_NAME, campaignRunId } from './outreach/campaigns/run.ts'
import type { RequestRecords } from './requests.ts'
import type { Base } from './store.ts'

interface Parts {
  readonly base: Pick<Base, 'sql'>
  readonly admin: Pick<Admin, 'search'>
  readonly requests: RequestRecords
}

/** Of each kind; an id that has more of them is no id. */
const FOUND_MOST = 20

/** As this server gives them to requests. */
const REQUEST_ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/**
 * What this server has under an id beside records and runs: its messages, leads, escalations, imports, sequences, campaigns
 * and last requests.
 */
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
      saga: string | null
    }>(
      `select s.workspace_id, s.project_id, s.created_at, j.state, i.id as saga
       from import_searches s left join import_jobs j on j.search_id = s.search_id
       left join onceonly_saga_instances i on i.saga = ? and i.id = s.search_id where s.search_id = ?`,
      [SEARCH_IMPORT, id],
    )
    return rows.map(({ workspace_id, project_id, created_at, state, saga }) => ({
      kind: 'import',
      id,
      about: `into the project ${project_id}, of the workspace ${workspace_id}`,
      state: state ?? 'uploading',
      at: Number(created_at),
      ...(saga === null ? noLinks : sagaLinks(id)),
    }))
  }

  /** A person is known by a number or an address, too. Their page is that of what was last done for them. */
  async function leads(id: string): Promise<readonly Found[]> {
    const its = sql.lookup(id)
    const rows = await sql.query<{ id: string; workspace_id: string; created_at: unknown }>(
      `select id, workspace_id, created_at from leads where id = ? or phone = ? or email = ? limit ${FOUND_MOST}`,
      [id, its, its],
    )
    return await Promise.all(
      rows.map(async ({ id: lead, workspace_id, created_at }) => {
        const [message] = await sql.query<MessageRow>(
          `select ${messageColumns} from messages where lead_id = ? order by created_at desc, id desc limit 1`,
          [lead],
        )
        const last = message === undefined ? 'without a message that is kept' : `last written to by ${message.id}`
        return {
          kind: 'lead',
          id: lead,
          about: `of the workspace ${workspace_id}, ${last}`,
          state: null,
          at: Number(created_at),
          ...linksOf(message === undefined ? null : recordIdOf(deliveryOf(message))),
        }
      }),
    )
  }

  async function sequences(id: string): Promise<readonly Found[]> {
    const rows = await sql.query<{ id: string; workspace_id: string; version: unknown; at: unknown }>(
      `select s.id, s.workspace_id, s.version, v.created_at as at from outreach_sequences s
       left join outreach_versions v on v.sequence_id = s.id and v.version = s.version
       where s.id = ? or s.name = ? limit ${FOUND_MOST}`,
      [id, sql.lookup(id)],
    )
    return rows.map(({ id: sequence, workspace_id, version, at }) => ({
      kind: 'sequence',
      id: sequence,
      about: `version ${Number(version)}, of the workspace ${workspace_id}; its page has the runs of its campaigns`,
      state: null,
      at: at === null ? null : Number(at),
      page: `/runs?attributes=${encodeURIComponent(`sequence=${sequence}`)}`,
      look: `onceonly runs --attributes '${JSON.stringify({ sequence })}'`,
    }))
  }

  /** Inside, its run has the workspace before its id, and a word. */
  async function campaigns(id: string): Promise<readonly Found[]> {
    const ending = `/${campaignRunId(id)}`
    const rows = await sql.query<{ id: string; state: string; started_at: unknown }>(
      `select id, state, started_at from onceonly_runs
       where definition = ? and substr(id, length(id) - length(cast(? as text)) + 1) = ? limit ${FOUND_MOST}`,
      [CAMPAIGN_NAME, ending, ending],
    )
    return rows.map(({ id: runId, state, started_at }) => ({
      kind: 'campaign',
      id: runId,
      about: 'a sequence for many leads',
      state,
      at: Number(started_at),
      page: `/campaigns/${encodeURIComponent(runId)}`,
      look: `onceonly run '${runId}'`,
    }))
  }

  function asked(id: string): readonly Found[] {
    const request = requests.get(id)
    if (request === null) return []
    const { record, operation, at } = request
    return [{ kind: 'request', id, about: operation, state: null, at, ...linksOf(record) }]
  }

  return async (id) => {
    const places = [messages, leads, escalations, imports, sequences, campaigns]
    const found = [...asked(id), ...(await Promise.all(places.map((each) => each(id)))).flat()]
    return found.length === 0 && REQUEST_ID.test(id) ? [notHere(id)] : found
  }
}

/** Requests are in memory: the one that has this id may be another process's, or an older one. */
function notHere(id: string): Found {
  const about =
    'if it is a request: none of the last of the server process that answers now. Look for `reqId` in the access log'
  return { kind: 'request', id, about, state: null, at: null, ...noLinks }
}

const noLinks = { page: null, look: null }

function sagaLinks(id: string): Pick<Found, 'page' | 'look'> {
  const page = `/sagas/${SEARCH_IMPORT}/${encodeURIComponent(id)}`
  return { page, look: `onceonly saga instance ${SEARCH_IMPORT} ${id}` }
}

function linksOf(record: string | null): Pick<Found, 'page' | 'look'> {
  if (record === null) return noLinks
  return { page: `/records/${record}`, look: `onceonly inspect --id ${record}` }
}
