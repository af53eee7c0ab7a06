import { DAY, type SqlValue } from 'onceonly'
import type { Base } from '../store.ts'
import { rowSweep, type Sweep, unheld } from '../workspaces/retention.ts'
import { inTransaction } from './transaction.ts'

/** Leads that one step looks at. */
const LEADS = 200

/**
 * Removes some of the leads without messages, with their conversations. A conversation may have messages of another lead:
 * then it stays, and its lead.
 */
export function emptyLeads(
  base: Base,
  {
    text,
    values,
    order = '',
  }: { readonly text: string; readonly values: readonly SqlValue[]; readonly order?: string },
): ReturnType<Sweep['step']> {
  const empty = `select id from leads where ${text}
    and not exists (select 1 from messages where lead_id = leads.id)
    and not exists (select 1 from conversations c join messages m on m.conversation_id = c.id where c.lead_id = leads.id)
    ${order} limit ? ${unheld(base)}`
  const unused = 'not exists (select 1 from messages where conversation_id = conversations.id)'
  return inTransaction(base, async (tx) => {
    const ids = (await tx.query<{ id: string }>(empty, [...values, LEADS])).map(({ id }) => id)
    if (ids.length === 0) return { removed: 0, more: false }
    const among = `(${ids.map(() => '?').join(', ')})`
    await tx.query(`delete from conversations where lead_id in ${among} and ${unused}`, ids)
    // A message may have come to the conversation meanwhile.
    const gone = await tx.query(
      `delete from leads where id in ${among}
         and not exists (select 1 from conversations where lead_id = leads.id) returning id`,
      ids,
    )
    return { removed: gone.length, more: gone.length === LEADS }
  })
}

/** Removes leads, and their conversations, some time after their last message. */
export function leadSweep(base: Base, retainDays: number): Sweep {
  const used = 'coalesce(used_at, created_at)'
  const old = { text: `${used} <= ${base.sql.now} - ?`, values: [retainDays * DAY], order: `order by ${used}` }
  const from = { text: `select ${used} from leads order by ${used} limit 1`, agoMs: retainDays * DAY }
  return { name: 'leads', from, step: () => emptyLeads(base, old) }
}

/** Messages that one step removes. */
const MESSAGES = 500

/**
 * Removes messages some time after their end. What is queued, being sent or unknown stays for as long as it takes: its
 * outcome is still to be found out. The record of a key lives for a day, less than any message.
 */
export function messageSweep(base: Base, retainDays: number): Sweep {
  const remove = `delete from messages where id in (
    select id from messages where status in ('sent', 'failed') and status_at <= ${base.sql.now} - ?
    order by status_at limit ? ${unheld(base)}) returning id`
  const agoMs = retainDays * DAY
  const from = { text: `select min(status_at) from messages where status in ('sent', 'failed')`, agoMs }
  return rowSweep(base, 'messages', remove, { values: [agoMs], most: MESSAGES, from })
}

/** Originals that one step removes. */
const ORIGINALS = 1_000

/** Removes which message was the first of its content, once another one may be sent again. */
export function originalSweep(base: Base, windowMs: number): Sweep {
  const remove = `delete from message_originals where lock_hash in
    (select lock_hash from message_originals where created_at <= ${base.sql.now} - ? limit ? ${unheld(base)})
    returning lock_hash`
  const from = { text: 'select min(created_at) from message_originals', agoMs: windowMs }
  return rowSweep(base, 'originals', remove, { values: [windowMs], most: ORIGINALS, from })
}
