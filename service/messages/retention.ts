import { DAY } from 'onceonly'
import type { Base } from '../store.ts'
import type { Sweep } from '../workspaces/retention.ts'

/** Messages that one step removes: a short statement, whatever the size of the table. */
const MESSAGES = 500

/**
 * Removes messages some time after their end. What is queued, being sent or unknown stays for as long as it takes: its
 * outcome is still to be found out. The record of a key lives for a day, less than any message.
 */
export function messageSweep({ sql }: Base, retainDays: number): Sweep {
  const hold = sql.dialect === 'sqlite' ? '' : 'for update skip locked'
  const remove = `delete from messages where id in (
    select id from messages where status in ('sent', 'failed') and status_at <= ${sql.now} - ?
    order by status_at limit ? ${hold}) returning id`
  return {
    name: 'messages',
    async step() {
      const removed = (await sql.query(remove, [retainDays * DAY, MESSAGES])).length
      return { removed, more: removed === MESSAGES }
    },
  }
}
