import type { Admin, ErasedOwner, OwnData } from 'onceonly/admin'
import type { ImportRemoval } from '../imports/retention.ts'
import { slotsOf } from '../outreach/webhook.ts'
import type { Base } from '../store.ts'
import { createChatRemoval } from './erase-chat.ts'
import { createWorkspaceImports } from './erase-imports.ts'
import { together } from './erase-left.ts'
import { createLetterRemoval } from './erase-letters.ts'
import { createMessageRemoval, within } from './erase-messages.ts'
import { createOwnRows, type Selection } from './erase-rows.ts'
import { createRunRemoval } from './erase-runs.ts'

interface Parts {
  readonly base: Base
  readonly admin: Pick<Admin, 'runs' | 'events'>
  readonly imports: ImportRemoval
}

const none: ReadonlySet<string> = new Set()

/**
 * What the systems keep of a workspace or a person. What is under way, or unknown, stays until it has ended, and is
 * named: its outcome is still to be found out, and a second run of the command takes it. Originals of contents stay too: they
 * are hashes, and keep a message from going out again inside its window.
 */
export function createOwnData({ base, admin, imports: removal }: Parts): OwnData {
  const { sql } = base
  const rows = createOwnRows(base)
  const chat = createChatRemoval(base)
  const imports = createWorkspaceImports(base, removal)
  const letters = createLetterRemoval(base, admin)
  const runs = createRunRemoval(base, admin)
  const sent = createMessageRemoval(base)

  /** A person may also be a caller. */
  function callersOf(owner: ErasedOwner): Selection {
    if (owner.kind === 'workspace') return { text: 'workspace_id = ?', values: [owner.tenant] }
    return within(owner, { text: 'caller = ?', values: [owner.person] })
  }

  const importsOf = async ({ tenant }: ErasedOwner) => (tenant === undefined ? none : await imports.ids(tenant))

  async function removeKeys(owner: ErasedOwner, progress: () => void): Promise<number> {
    await rows.remove('caller_rights', 'workspace_id, caller', callersOf(owner), progress)
    return await rows.remove('api_keys', 'id', callersOf(owner), progress)
  }

  return {
    async count(owner) {
      const ofRuns = await runs.count(owner, sent.leadsOf(owner))
      const { messages, leads } = await sent.count(owner)
      const left = together(ofRuns.left, messages.left)
      const people = {
        'API keys': await rows.count('api_keys', callersOf(owner)),
        runs: ofRuns.count,
        messages: messages.count,
        leads,
        'dead letters': await letters.count(owner, await importsOf(owner)),
      }
      if (owner.kind === 'person') return { counts: people, left }
      const own = { text: 'workspace_id = ?', values: [owner.tenant] }
      const ofTenant = { text: 'tenant = ?', values: [owner.tenant] }
      const counts = {
        ...people,
        ...(await chat.count(owner)),
        imports: await imports.count(owner.tenant),
        projects: await rows.count('import_projects', own),
        sequences: await rows.count('outreach_sequences', own),
        escalations: await rows.count('case_escalations', ofTenant),
        cases: await rows.count('cases', ofTenant),
      }
      return { counts, left }
    },
    async erase(owner, progress) {
      // Read before the imports go: dead letters name them.
      const named = await importsOf(owner)
      // First, so that nothing new comes in meanwhile.
      const keys = await removeKeys(owner, progress)
      const ofRuns = await runs.remove(owner, sent.leadsOf(owner), progress)
      const { messages, leads } = await sent.remove(owner, progress)
      const left = together(ofRuns.left, messages.left)
      const people = {
        'API keys': keys,
        runs: ofRuns.count,
        messages: messages.count,
        leads,
        'dead letters': await letters.remove(owner, named, progress),
      }
      if (owner.kind === 'person') return { counts: people, left }
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
      // Those that are taken keep their rate for what is left, and go a day later.
      const slots = slotsOf(owner.tenant)
      await sql.query(
        `delete from message_slots where substr(channel, 1, length(cast(? as text))) = ? and free_at <= ${sql.now}`,
        [slots, slots],
      )
      // What is left is still counted.
      await sql.query(
        `delete from workspace_usage where workspace_id = ? and quota in
          (select quota from workspace_usage where workspace_id = ? group by quota having sum(used) = 0)`,
        [owner.tenant, owner.tenant],
      )
      await sql.query('delete from workspaces where id = ?', [owner.tenant])
      return { counts, left }
    },
  }
}
