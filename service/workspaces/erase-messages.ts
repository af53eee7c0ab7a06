import type { ErasedOwner } from 'onceonly/admin'
import { emptyLeads } from '../messages/retention.ts'
import type { Base } from '../store.ts'
import { createLeft, type Erased } from './erase-left.ts'
import { createOwnRows, ROWS, type Selection } from './erase-rows.ts'

/** What is sent to the leads of an owner. */
export interface MessageRemoval {
  leadsOf(owner: ErasedOwner): Selection
  count(owner: ErasedOwner): Promise<{ readonly messages: Erased; readonly leads: number }>
  /** Leads stay with messages and runs that are left. */
  remove(owner: ErasedOwner, progress: () => void): Promise<{ readonly messages: Erased; readonly leads: number }>
}

interface MessageRow {
  readonly id: string
  readonly status: string
  readonly recipient_phone: string | null
  readonly recipient_email: string | null
  readonly is_own: unknown
}

export function createMessageRemoval(base: Base): MessageRemoval {
  const { sql } = base
  const rows = createOwnRows(base)

  /** A person is a phone number or an e-mail address of leads. */
  function leadsOf(owner: ErasedOwner): Selection {
    if (owner.kind === 'workspace') return { text: 'workspace_id = ?', values: [owner.tenant] }
    const its = sql.lookup(owner.person)
    return within(owner, { text: '(phone = ? or email = ?)', values: [its, its] })
  }

  /**
   * Everything in a conversation with the person, and what went to their address beside the phone of another lead. Recipients
   * cannot be looked up where they are encrypted, so that all messages are read, page by page.
   */
  async function* each(owner: ErasedOwner): AsyncGenerator<MessageRow> {
    const leads = leadsOf(owner)
    const of = within(owner, { text: 'id > ?', values: [] })
    const isOwn =
      owner.kind === 'workspace'
        ? { text: '1', values: [] }
        : {
            text: `case when lead_id in (select id from leads where ${leads.text}) or conversation_id in
              (select id from conversations where lead_id in (select id from leads where ${leads.text})) then 1 else 0 end`,
            values: [...leads.values, ...leads.values],
          }
    for (let after = ''; ; ) {
      const page = await sql.query<MessageRow>(
        `select id, status, recipient_phone, recipient_email, ${isOwn.text} as is_own from messages
         where ${of.text} order by id limit ${ROWS}`,
        [...isOwn.values, after, ...of.values],
      )
      for (const row of page) {
        const theirs = owner.kind === 'person' && [row.recipient_phone, row.recipient_email].includes(owner.person)
        if (theirs || Number(row.is_own) === 1) yield row
      }
      after = page.at(-1)?.id ?? ''
      if (page.length < ROWS) return
    }
  }

  async function messages(owner: ErasedOwner, remove: ((ids: readonly string[]) => Promise<number>) | null) {
    const left = createLeft()
    let ended: string[] = []
    let count = 0
    const flush = async () => {
      count += remove === null ? ended.length : await remove(ended)
      ended = []
    }
    for await (const { id, status } of each(owner)) {
      if (status === 'sent' || status === 'failed') ended.push(id)
      else left.add({ what: 'message', id, why: status === 'unknown' ? 'unknown' : 'running' })
      if (ended.length === ROWS) await flush()
    }
    if (ended.length > 0) await flush()
    return { count, left: left.seen() }
  }

  async function removed(ids: readonly string[]): Promise<number> {
    const among = `(${ids.map(() => '?').join(', ')})`
    // One that an operator let go out again meanwhile is under way.
    const gone = await sql.query(
      `delete from messages where id in ${among} and status in ('sent', 'failed') returning id`,
      ids,
    )
    return gone.length
  }

  return {
    leadsOf,
    count: async (owner) => ({
      messages: await messages(owner, null),
      leads: await rows.count('leads', unwritten(leadsOf(owner))),
    }),
    async remove(owner, progress) {
      const gone = await messages(owner, async (ids) => {
        const count = await removed(ids)
        progress()
        return count
      })
      let leads = 0
      for (let more = true; more; progress()) {
        const step = await emptyLeads(base, unused(leadsOf(owner)))
        leads += step.removed
        more = step.more
      }
      return { messages: gone, leads }
    },
  }
}

/** Those of whose messages none is under way. */
function unwritten({ text, values }: Selection): Selection {
  const messages = `select 1 from messages m where m.lead_id = leads.id and m.status not in ('sent', 'failed')`
  return { text: `${text} and not exists (${messages})`, values }
}

/** The run of a campaign is found by its lead. */
function unused({ text, values }: Selection): Selection {
  const runs = 'select 1 from outreach_runs o join onceonly_runs r on r.id = o.run_id'
  return { text: `${text} and not exists (${runs} where o.lead_id = leads.id and r.ended_at is null)`, values }
}

export function within({ tenant }: ErasedOwner, { text, values }: Selection): Selection {
  return tenant === undefined ? { text, values } : { text: `${text} and workspace_id = ?`, values: [...values, tenant] }
}
