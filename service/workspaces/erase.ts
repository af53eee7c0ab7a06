import type { SqlValue } from 'onceonly'
import type { Admin, ErasedOwner, OwnData } from 'onceonly/admin'
import { ENDED, type ImportRemoval } from '../imports/retention.ts'
import type { Base } from '../store.ts'

interface Parts {
  readonly base: Base
  readonly admin: Pick<Admin, 'runs'>
  readonly imports: ImportRemoval
}

/** Rows of one statement, so that none holds others up. */
const ROWS = 500
const IMPORTS = 20

const OVER = `status in ('sent', 'failed')`

/** Which rows belong to the owner. */
interface Selection {
  readonly text: string
  readonly values: readonly SqlValue[]
}

/**
 * What the systems keep of a workspace or a person. What is under way stays until it has ended: its outcome is still to be
 * found out, and a second run of the command takes it. Originals of contents stay too: they are hashes, and keep a
 * message from going out again inside its window.
 */
export function createOwnData({ base, admin, imports }: Parts): OwnData {
  const { sql } = base

  /** A person is a phone number or an e-mail address of leads. */
  function leadsOf(owner: ErasedOwner): Selection {
    if (owner.kind === 'workspace') return { text: 'workspace_id = ?', values: [owner.tenant] }
    const values = [sql.lookup(owner.person), sql.lookup(owner.person)]
    const within = owner.tenant === undefined ? '' : ' and workspace_id = ?'
    return {
      text: `(phone = ? or email = ?)${within}`,
      values: owner.tenant === undefined ? values : [...values, owner.tenant],
    }
  }

  function messagesOf(owner: ErasedOwner): Selection {
    if (owner.kind === 'workspace') return { text: 'workspace_id = ?', values: [owner.tenant] }
    const { text, values } = leadsOf(owner)
    return { text: `lead_id in (select id from leads where ${text})`, values }
  }

  async function countOf(table: string, { text, values }: Selection): Promise<number> {
    const [row] = await sql.query<{ n: unknown }>(`select count(*) as n from ${table} where ${text}`, values)
    return Number(row?.n ?? 0)
  }

  async function remove(
    table: string,
    key: string,
    { text, values }: Selection,
    progress: () => void,
  ): Promise<number> {
    let removed = 0
    for (;;) {
      const some = `select ${key} from ${table} where ${text} limit ${ROWS}`
      const gone = await sql.query(`delete from ${table} where (${key}) in (${some}) returning 1 as gone`, values)
      removed += gone.length
      progress()
      if (gone.length < ROWS) return removed
    }
  }

  async function runsOf(owner: ErasedOwner): Promise<readonly string[]> {
    const ofWorkspace = owner.kind === 'workspace' ? owner.tenant : owner.tenant
    const where = ofWorkspace === undefined ? '1 = 1' : 'o.workspace_id = ?'
    const found: string[] = []
    for (let after = ''; ; ) {
      const rows = await sql.query<{ id: string; input: string }>(
        `select r.id, r.input from outreach_runs o join onceonly_runs r on r.id = o.run_id
         where ${where} and r.id > ? order by r.id limit ${ROWS}`,
        ofWorkspace === undefined ? [after] : [ofWorkspace, after],
      )
      for (const { id, input } of rows) {
        if (owner.kind === 'workspace' || JSON.stringify(JSON.parse(input)).includes(JSON.stringify(owner.person)))
          found.push(id)
      }
      after = rows.at(-1)?.id ?? ''
      if (rows.length < ROWS) return found
    }
  }

  async function removeRun(id: string): Promise<void> {
    await admin.runs?.cancel(id)
    for (const table of ['onceonly_run_steps', 'onceonly_run_signals']) {
      await sql.query(`delete from ${table} where run_id = ?`, [id])
    }
    await sql.query('delete from onceonly_runs where id = ?', [id])
    await sql.query('delete from outreach_runs where run_id = ?', [id])
  }

  async function removeImports(tenant: string, progress: () => void): Promise<number> {
    let removed = 0
    for (;;) {
      const rows = await sql.query<{ search_id: string }>(
        `select s.search_id from import_searches s left join import_jobs j on j.search_id = s.search_id
         where s.workspace_id = ? and (j.search_id is null or j.${ENDED}) limit ${IMPORTS}`,
        [tenant],
      )
      for (const { search_id } of rows) await imports.removeImport(search_id)
      removed += rows.length
      progress()
      if (rows.length < IMPORTS) return removed
    }
  }

  const ended = ({ text, values }: Selection): Selection => ({ text: `${text} and ${OVER}`, values })
  const unused = ({ text, values }: Selection): Selection => ({
    text: `${text} and not exists (select 1 from messages m where m.lead_id = leads.id)`,
    values,
  })

  return {
    async count(owner) {
      const [messages, leads] = [messagesOf(owner), leadsOf(owner)]
      const counts = {
        messages: await countOf('messages', messages),
        leads: await countOf('leads', leads),
        runs: (await runsOf(owner)).length,
      }
      if (owner.kind === 'person') return counts
      const own = { text: 'workspace_id = ?', values: [owner.tenant] }
      return {
        ...counts,
        imports: await countOf('import_searches', own),
        projects: await countOf('import_projects', own),
        sequences: await countOf('outreach_sequences', own),
        escalations: await countOf('case_escalations', { text: 'tenant = ?', values: [owner.tenant] }),
      }
    },
    async erase(owner, progress) {
      const runs = await runsOf(owner)
      for (const id of runs) {
        await removeRun(id)
        progress()
      }
      const leads = leadsOf(owner)
      const counts = { runs: runs.length, messages: await remove('messages', 'id', ended(messagesOf(owner)), progress) }
      const gone = `select id from leads where ${unused(leads).text}`
      await sql.query(`delete from conversations where lead_id in (${gone})`, leads.values)
      const people = { ...counts, leads: await remove('leads', 'id', unused(leads), progress) }
      if (owner.kind === 'person') return people
      const own = { text: 'workspace_id = ?', values: [owner.tenant] }
      const ofTenant = { text: 'tenant = ?', values: [owner.tenant] }
      const sequences = `select id from outreach_sequences where ${own.text}`
      await sql.query(`delete from outreach_versions where sequence_id in (${sequences})`, own.values)
      await remove('escalation_notices', 'id', ofTenant, progress)
      return {
        ...people,
        imports: await removeImports(owner.tenant, progress),
        projects: await remove('import_projects', 'workspace_id, project_id', own, progress),
        sequences: await remove('outreach_sequences', 'id', own, progress),
        escalations: await remove('case_escalations', 'number', ofTenant, progress),
      }
    },
  }
}
