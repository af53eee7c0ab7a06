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
  // A room whose last entries have just gone is due once more, for its final order; then when its senders are.
  const later = (from: string) => `update onceonly_stream_rooms set sweep_at = ${from} + ? ${where}
    and not exists (select 1 from onceonly_stream_entries ${where})`
  const heard = (table: string) => `select min(seen_at) + ? as due from onceonly_stream_${table} ${where}`
  const oldest = `coalesce((select min(due) from (${heard('senders')} union all ${heard('sessions')}
    union all ${heard('published')}) as heard), ${now} + ?)`
  const forgetting = createForgetting(store.sql, where)

  return async (room: string, keep: Retention): Promise<Trimmed> => {
    const { olderThanMs, mostEntries, clientsMs, publishedMs } = keep
    const place = [region, room]
    const forgotten = await forgetting(place, keep)
    const removed = await ownTransaction(store, async (tx) => {
      // Locked as by a write, so that no reader finds a position whose entries are being removed.
      const statement = `select at from onceonly_stream_rooms ${where} ${hold}`
      const [head] = await tx.query<{ at: unknown }>(statement, place)
      if (head === undefined) return 0
      const [found] = await tx.query<{ at: unknown }>(last, [...place, olderThanMs, Number(head.at) - mostEntries])
      let gone = 0
      if (typeof found?.at === 'number' || typeof found?.at === 'string' || typeof found?.at === 'bigint') {
        const upTo = Number(found.at)
        await tx.query(mark, [upTo, ...place])
        const remove = `delete from onceonly_stream_entries ${where} and at <= ? returning at`
        gone = (await tx.query(remove, [...place, upTo])).length
      }
      if (gone > 0) await tx.query(later(now), [streamLimits.orderRetainMs, ...place, ...place])
      else {
        const dues = [clientsMs, ...place, clientsMs, ...place, publishedMs, ...place, clientsMs]
        await tx.query(later(oldest), [...dues, 0, ...place, ...place])
      }
      return gone
    })
    return { removed, more: Math.max(removed, forgotten) >= limits.sweepRows }
  }
}

/**
 * Forgets senders, a bounded number at a time and without the room's lock: what a write makes newer meanwhile stays, and
 * what it has read already, it decides as if it had come a moment earlier.
 */
function createForgetting(sql: SqlSeam, where: string) {
  const { now } = sql
  // Of people there are few, and each message moves their time: an index of it would cost more than this search.
  const silent = (table: string, key: string) => `delete from onceonly_stream_${table} ${where} and seen_at < ${now} - ?
    and (${key}) in (select ${key} from onceonly_stream_${table} ${where} and seen_at < ${now} - ?
      limit ${limits.sweepRows}) returning client`
  const senders = silent('senders', 'client, epoch')
  const sessions = silent('sessions', 'client')
  // As many as may be known, counted from the newest; those of the same moment stay together.
  const published = `delete from onceonly_stream_published ${where} and client in (
      select client from onceonly_stream_published ${where} and (seen_at < ${now} - ? or seen_at < (
        select seen_at from onceonly_stream_published ${where} order by seen_at desc limit 1 offset ?))
      order by seen_at limit ${limits.sweepRows}) returning client`

  return async (place: readonly string[], keep: Retention): Promise<number> => {
    const { clientsMs, publishedMs, mostPublished } = keep
    const old = [...place, clientsMs, ...place, clientsMs]
    const counts = [
      await sql.query(senders, old),
      await sql.query(sessions, old),
      await sql.query(published, [...place, ...place, publishedMs, ...place, mostPublished - 1]),
    ]
    return Math.max(...counts.map(({ length }) => length))
  }
}
