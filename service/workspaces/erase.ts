import type { Admin, ErasedOwner, OwnData } from 'onceonly/admin'
import type { ImportRemoval } from '../imports/retention.ts'
import type { Base } from '../store.ts'
import { createChatRemoval } from './erase-chat.ts'
import { createWorkspaceImports } from './erase-imports.ts'
import { createLetterRemoval } from './erase-letters.ts'
import { createOwnRows, type Selection } from './erase-rows.ts'
import { createRunRemoval } from './erase-runs.ts'

interface Parts {
  readonly base: Base
  readonly admin: Pick<Admin, 'runs' | 'events'>
  readonly imports: ImportRemoval
}

const OVER = `status in ('sent', 'failed')`

const none: ReadonlySet<string> = new Set()

/**
 * What the systems keep of a workspace or a person. What is under way stays until it has ended: its outcome is still to be
 * found out, and a second run of the command takes it. Originals of contents stay too: they are hashes, and keep a
 * message from going out again inside its window.
 */
export function createOwnData({ base, admin, imports: removal }: Parts): OwnData {
  const { sql } = base
  const rows = createOwnRows(base)
  const chat = createChatRemoval(base)
  const imports = createWorkspaceImports(base, removal)
  const letters = createLetterRemoval(base, admin)
  const runs = createRunRemoval(base, admin)

  /** A person is a phone number or an e-mail address of leads. */
  function leadsOf(owner: ErasedOwner): Selection {
    if (owner.kind === 'workspace') return { text: 'workspace_id = ?', values: [owner.tenant] }
    return within(owner, {
      text: '(phone = ? or email = ?)',
      values: [sql.lookup(owner.person), sql.lookup(owner.person)],
    })
  }

  function messagesOf(owner: ErasedOwner): Selection {
    if (owner.kind === 'workspace') return { text: 'workspace_id = ?', values: [owner.tenant] }
    const { text, values } = leadsOf(owner)
    return { text: `lead_id in (select id from leads where ${text})`, values }
  }

  /** A person may also be a caller. */
  function callersOf(owner: ErasedOwner): Selection {
    if (owner.kind === 'workspace') return { text: 'workspace_id = ?', values: [owner.tenant] }
    return within(owner, { text: 'caller = ?', values: [owner.person] })
  }

  const ended = ({ text, values }: Selection): Selection => ({ text: `${text} and ${OVER}`, values })
  const unused = ({ text, values }: Selection): Selection => ({
    text: `${text} and not exists (select 1 from messages m where m.lead_id = leads.id)`,
    values,
  })
  const importsOf = async ({ tenant }: ErasedOwner) => (tenant === undefined ? none : await imports.ids(tenant))

  async function removeKeys(owner: ErasedOwner, progress: () => void): Promise<number> {
    await rows.remove('caller_rights', 'workspace_id, caller', callersOf(owner), progress)
    return await rows.remove('api_keys', 'id', callersOf(owner), progress)
  }

  async function removePeople(owner: ErasedOwner, progress: () => void) {
    const ids = await runs.of(owner, leadsOf(owner))
    for (const id of ids) {
      await runs.remove(id)
      progress()
    }
    const messages = await rows.remove('messages', 'id', ended(messagesOf(owner)), progress)
    const leads = leadsOf(owner)
    const gone = `select id from leads where ${unused(leads).text}`
    await sql.query(`delete from conversations where lead_id in (${gone})`, leads.values)
    return { runs: ids.length, messages, leads: await rows.remove('leads', 'id', unused(leads), progress) }
  }

  return {
    async count(owner) {
      const people = {
        'API keys': await rows.count('api_keys', callersOf(owner)),
        runs: (await runs.of(owner, leadsOf(owner))).length,
        messages: await rows.count('messages', messagesOf(owner)),
        leads: await rows.count('leads', leadsOf(owner)),
        'dead letters': await letters.count(owner, await importsOf(owner)),
      }
      if (owner.kind === 'person') return people
      const own = { text: 'workspace_id = ?', values: [owner.tenant] }
      const ofTenant = { text: 'tenant = ?', values: [owner.tenant] }
      return {
        ...people,
        ...(await chat.count(owner)),
        imports: await imports.count(owner.tenant),
        projects: await rows.count('import_projects', own),
        sequences: await rows.count('outreach_sequences', own),
        escalations: await rows.count('case_escalations', ofTenant),
        cases: await rows.count('cases', ofTenant),
      }
    },
    async erase(owner, progress) {
      // Read before the imports go: dead letters name them.
      const named = await importsOf(owner)
      // First, so that nothing new comes in meanwhile.
      const keys = await removeKeys(owner, progress)
      const people = {
        'API keys': keys,
        ...(await removePeople(owner, progress)),
        'dead letters': await letters.remove(owner, named, progress),
      }
      if (owner.kind === 'person') return people
      const own = { text: 'workspace_id = ?', values: [owner.tenant] }
      const ofTenant = { text: 'tenant = ?', values: [owner.tenant] }
      const sequences = `select id from outreach_sequences where ${own.text}`
      await sql.query(`delete from outreach_versions where sequence_id in (${sequences})`, own.values)
      await rows.remove('escalation_notices', 'id', ofTenant, progress)
      await rows.remove('escalation_audit', 'id', ofTenant, progress)
      const counts = {
        ...people,
        ...(await chat.remove(owner, progress)),
        imports: await imports.remove(owner.tenant, progress),
        projects: await rows.remove('import_projects', 'workspace_id, project_id', own, progress),
        sequences: await rows.remove('outreach_sequences', 'id', own, progress),
        escalations: await rows.remove('case_escalations', 'number', ofTenant, progress),
        cases: await rows.remove('cases', 'tenant, id', ofTenant, progress),
      }
      await sql.query('delete from workspaces where id = ?', [owner.tenant])
      return counts
    },
  }
}

function within({ tenant }: ErasedOwner, { text, values }: Selection): Selection {
  return tenant === undefined ? { text, values } : { text: `${text} and workspace_id = ?`, values: [...values, tenant] }
}
