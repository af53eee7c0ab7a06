import { DAY } from 'onceonly'
import type { Base } from '../store.ts'
import { rowSweep, type Sweep, unheld } from '../workspaces/retention.ts'
import { inTransaction } from './transaction.ts'

/** Leads that one step looks at. */
const LEADS = 200

/** Removes leads, and their conversations, some time after their last message. */
export function leadSweep(base: Base, retainDays: number): Sweep {
  const { sql } = base
  const old = `select id from leads where coalesce(used_at, created_at) <= ${sql.now} - ?
    and not exists (select 1 from messages where lead_id = leads.id)
    and not exists (select 1 from conversations c join messages m on m.conversation_id = c.id where c.lead_id = leads.id)
    order by coalesce(used_at, created_at) limit ? ${unheld(base)}`
  const unused = 'not exists (select 1 from messages where conversation_id = conversations.id)'
  return {
    name: 'leads',
    step: () =>
      inTransaction(base, async (tx) => {
        const ids = (await tx.query<{ id: string }>(old, [retainDays * DAY, LEADS])).map(({ id }) => id)
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
      }),
  }
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
  return rowSweep(base, 'messages', remove, [retainDays * DAY], MESSAGES)
}

/** Originals that one step removes. */
const ORIGINALS = 1_000

/** Removes which message was the first of its content, once another one may be sent again. */
export function originalSweep(base: Base, windowMs: number): Sweep {
  const remove = `delete from message_originals where lock_hash in
    (select lock_hash from message_originals where created_at <= ${base.sql.now} - ? limit ? ${unheld(base)})
    returning lock_hash`
  return rowSweep(base, 'originals', remove, [windowMs], ORIGINALS)
}
