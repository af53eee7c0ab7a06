import { limits } from '../core/limits.ts'
import type { SqlStore } from '../store/port.ts'
import type { Retention } from './ports.ts'

const TRANSACTION = { timeoutMs: limits.storeCallMs, lockMs: limits.transactionLockMs, refuseTwinOf: null }

/**
 * Removes the oldest entries of a room, in the order in which they were merged: so of every log a beginning. A bounded
 * number at a time; who finds that many comes again.
 */
export function createTrim({ sql, transactions }: SqlStore, region: string) {
  const { now, dialect } = sql
  const hold = dialect === 'sqlite' ? '' : 'for update'
  const where = 'where region = ? and room = ?'
  // Entries are stored in the order of the time, so that the last of them that is past its end ends the row.
  const last = `select max(at) as at from (
      select at, stored_at from onceonly_stream_entries ${where} order by at limit ${limits.sweepRows}) as oldest
    where stored_at < ${now} - ? or at <= ?`
  const mark = `update onceonly_stream_logs set trimmed = coalesce((
      select max(m.n) from onceonly_stream_entries as m
      where m.region = onceonly_stream_logs.region and m.room = onceonly_stream_logs.room
        and m.log = onceonly_stream_logs.log and m.at <= ?), trimmed) ${where}`
  // The index of a sender is its place in the table, so that this looks at the whole room; it is done once in a while.
  const forget = (table: string) => `delete from onceonly_stream_${table} ${where} and seen_at < ${now} - ?`

  return (room: string, { olderThanMs, mostEntries, clientsMs }: Retention): Promise<{ readonly removed: number }> =>
    transactions.run(async ({ tx }) => {
      const place = [region, room]
      // Locked as by a write, so that nobody finds a position whose entries go away under it.
      const statement = `select at from onceonly_stream_rooms ${where} ${hold}`
      const [head] = await tx.query<{ at: unknown }>(statement, place)
      if (head === undefined) return { removed: 0 }
      const [found] = await tx.query<{ at: unknown }>(last, [...place, olderThanMs, Number(head.at) - mostEntries])
      let removed = 0
      if (typeof found?.at === 'number' || typeof found?.at === 'string' || typeof found?.at === 'bigint') {
        const upTo = Number(found.at)
        await tx.query(mark, [upTo, ...place])
        const gone = `delete from onceonly_stream_entries ${where} and at <= ? returning at`
        removed = (await tx.query(gone, [...place, upTo])).length
      }
      await tx.query(forget('senders'), [...place, clientsMs])
      await tx.query(forget('sessions'), [...place, clientsMs])
      return { removed }
    }, TRANSACTION)
}
