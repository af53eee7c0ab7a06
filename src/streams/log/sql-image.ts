import type { RowOf, SqlSeam, SqlTx } from '../../ledger/store/sql.ts'
import type { RoomImage } from '../ports.ts'
import { big, elements, publishedElement, text } from './sql-rows.ts'

interface Where {
  readonly region: string
  readonly room: string
}

/** Read while the room is locked, so that position and senders are of one moment. */
export async function imageOf(tx: SqlTx, { dialect }: SqlSeam, { region, room }: Where): Promise<RoomImage> {
  const place = [region, room]
  const hold = dialect.lock('for share')
  await tx.query(`select at from onceonly_stream_rooms where region = ? and room = ? ${hold}`, place)
  const logs = await tx.query<{ log: string; head: unknown }>(
    'select log, head from onceonly_stream_logs where region = ? and room = ?',
    place,
  )
  const senders = await tx.query<{ client: string; epoch: unknown; floor: unknown; last_log: string; last_n: unknown }>(
    'select client, epoch, floor, last_log, last_n from onceonly_stream_senders where region = ? and room = ?',
    place,
  )
  const published = await tx.query<RowOf<'client' | 'digest' | 'log', 'n'>>(
    'select client, digest, log, n from onceonly_stream_published where region = ? and room = ?',
    place,
  )
  return {
    position: Object.fromEntries(logs.map(({ log, head }) => [log, Number(head)])),
    senders: senders.map(({ client, epoch, floor, last_log, last_n }) => ({
      client,
      epoch: Number(epoch),
      floor: Number(floor),
      last: { log: last_log, n: Number(last_n) },
    })),
    published: published.map(({ client, digest, log, n }) => ({ client, digest, place: { log, n: Number(n) } })),
  }
}

/** Counts go up only: what is further here than in the image stays as it is. */
export async function adopt(
  tx: SqlTx,
  sql: SqlSeam,
  { region, room, ownLog, image }: Where & { readonly ownLog: string; readonly image: RoomImage },
): Promise<void> {
  const { dialect, now } = sql
  const place = [region, room]
  const begin = 'insert into onceonly_stream_rooms (region, room, log, at) values (?, ?, ?, 0) on conflict do nothing'
  await tx.query(begin, [...place, ownLog])
  const hold = dialect.lock('for update')
  const lock = `select log from onceonly_stream_rooms where region = ? and room = ? ${hold}`
  const [own] = await tx.query<{ log: string }>(lock, place)
  const logs = Object.entries(image.position).filter(([log]) => log !== own?.log)
  await tx.query(
    `insert into onceonly_stream_logs (region, room, log, head, trimmed)
      select ?, ?, ${text('log')}, ${big('n')}, ${big('n')} from ${elements(dialect)} where true
      on conflict (region, room, log) do update set head = excluded.head, trimmed = excluded.head
      where onceonly_stream_logs.head < excluded.head`,
    [...place, JSON.stringify(logs.map(([log, n]) => ({ log, n })))],
  )
  const senders = image.senders.map(({ client, epoch, floor, last: { log, n } }) => ({ client, epoch, floor, log, n }))
  await tx.query(
    `insert into onceonly_stream_senders (region, room, client, epoch, floor, last_log, last_n, seen_at)
      select ?, ?, ${text('client')}, ${big('epoch')}, ${big('floor')}, ${text('log')}, ${big('n')}, (select ${now})
      from ${elements(dialect)} where true
      on conflict (region, room, client, epoch) do update set floor = excluded.floor, last_log = excluded.last_log,
        last_n = excluded.last_n, seen_at = excluded.seen_at
      where onceonly_stream_senders.floor < excluded.floor`,
    [...place, JSON.stringify(senders)],
  )
  const published = image.published.map((each) => publishedElement(sql, room, each))
  await tx.query(
    `insert into onceonly_stream_published (region, room, client, digest, log, n, seen_at)
      select ?, ?, ${text('client')}, ${text('digest')}, ${text('log')}, ${big('n')}, (select ${now})
      from ${elements(dialect)} where true on conflict do nothing`,
    [...place, JSON.stringify(published)],
  )
}
