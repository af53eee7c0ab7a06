import { limits } from '../../ledger/core/limits.ts'
import type { SqlStore } from '../../ledger/store/port.ts'
import type { SqlSeam } from '../../ledger/store/sql.ts'
import { ownTransaction } from '../../ledger/store/wing-tables.ts'
import { streamLimits } from '../limits.ts'
import type { Retention, Trimmed } from '../ports.ts'

/** Whether any room is due, by the index alone. */
export function anyDue({ now }: SqlSeam): string {
  return `select 1 as found from onceonly_stream_rooms where region = ? and sweep_at <= ${now} limit 1`
}

/** Skips rooms with a write in progress: they are due again the next time, and no transaction waits for another. */
export function due({ dialect, now }: SqlSeam): string {
  const hold = dialect.lock('for update skip locked')
  return `with due as materialized (select room from onceonly_stream_rooms
      where region = ? and sweep_at <= ${now} order by sweep_at limit ? ${hold})
    update onceonly_stream_rooms set sweep_at = ${now} + ? where region = ? and room in (select room from due)
    returning room`
}

/**
 * Removes the oldest entries of a room, in the order in which they were merged: so of every log a beginning. A bounded
 * number at a time; who finds that many comes again.
 */
export function createTrim(store: SqlStore, region: string) {
  const { now, dialect } = store.sql
  const hold = dialect.lock('for update')
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

  // A room whose last entries have just gone is due once more, for its final order; then when its clients are.
  const later = (from: string) => `update onceonly_stream_rooms set sweep_at = ${from} + ? ${where}
    and not exists (select 1 from onceonly_stream_entries ${where})`
  const heard = (table: string) => `select min(seen_at) as seen_at from onceonly_stream_${table} ${where}`
  const oldest = `coalesce((select min(seen_at) from (${heard('senders')} union all ${heard('sessions')}) as heard), ${now})`

  return (room: string, { olderThanMs, mostEntries, clientsMs }: Retention): Promise<Trimmed> =>
    ownTransaction(store, async (tx) => {
      const place = [region, room]
      // Locked as by a write, so that no reader finds a position whose entries are being removed.
      const statement = `select at from onceonly_stream_rooms ${where} ${hold}`
      const [head] = await tx.query<{ at: unknown }>(statement, place)
      if (head === undefined) return { removed: 0, more: false }
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
      if (removed > 0) await tx.query(later(now), [streamLimits.orderRetainMs, ...place, ...place])
      else await tx.query(later(oldest), [...place, ...place, clientsMs, ...place, ...place])
      return { removed, more: removed >= limits.sweepRows }
    })
}
