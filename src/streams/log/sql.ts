import { sha256Hex } from '../../ledger/core/digest.ts'
import { checkSqlStore } from '../../ledger/sql-store.ts'
import { createGroupCommit, isStatementSpoiled } from '../../ledger/store/group-commit.ts'
import type { SqlStore } from '../../ledger/store/port.ts'
import type { RoomDialect, RowOf, SqlTx } from '../../ledger/store/sql.ts'
import { createRuntime, type Runtime } from '../../runtime/runtime.ts'
import type { Entered, FoundPosition, RoomLog, RoomState, RoomWritten, SenderState, SessionClaim } from '../ports.ts'
import type { Position } from '../protocol/protocol.ts'
import { adopt, imageOf } from './sql-image.ts'
import { createRoomEar } from './sql-listen.ts'
import { openStreamTables } from './sql-open.ts'
import { ENTRY_COLUMNS, type EntryRow, elements, entryOf, sizeOf, text } from './sql-rows.ts'
import { createRoomStates, type RoomWrite, roomOf } from './sql-state.ts'
import { anyDue, createTrim, due } from './sql-trim.ts'
import { decideBatch } from './sql-write.ts'

export interface SqlRoomLogOptions {
  /** SQLite or PostgreSQL. Regions may share one; each keeps rows of its own. */
  readonly store: SqlStore
  /** The region whose rooms it keeps. */
  readonly region: string
  /** Time, randomness and scheduling; tests give their own. @default the system's */
  readonly runtime?: Runtime
}

/** The random epoch of a new log, so that no position of a lost log fits it. */
const EPOCH_CHARS = 6
/** Of a digest: a topic is part of the SQL, and a region's name may hold what a topic may not. */
const TOPIC_CHARS = 16

/**
 * Rooms of one region in an SQL store. Writes that come together share one transaction, whatever their rooms.
 *
 * @example
 * ```ts
 * import { sqliteStore } from 'onceonly/sqlite'
 * import { createSqlRoomLog, createStreamRegion } from 'onceonly/stream/server'
 *
 * const log = createSqlRoomLog({ store: sqliteStore('rooms.db'), region: 'eu' })
 * const region = createStreamRegion({ region: 'eu', log })
 * ```
 */
export function createSqlRoomLog({ store, region, runtime = createRuntime() }: SqlRoomLogOptions): RoomLog {
  checkSqlStore('createSqlRoomLog', store)
  const { sql } = store
  const epoch = runtime.random().toString(36).slice(2).padEnd(EPOCH_CHARS, '0').slice(0, EPOCH_CHARS)
  const ownLog = `${region}.${epoch}`
  const topic = `stream:${sha256Hex(region).slice(0, TOPIC_CHARS)}`
  const states = createRoomStates(sql, region, () => ownLog, sql.wake(topic))
  const trim = createTrim(store, region)
  const { prepare, inTransaction } = openStreamTables(store)

  async function query<Row>(statement: string, values: readonly (string | number)[]): Promise<readonly Row[]> {
    await prepare()
    return sql.query<Row>(statement, values)
  }

  const ear = createRoomEar({ sql, region, topic, runtime, query })

  const group = createGroupCommit<RoomWrite, RoomWritten>(runtime, {
    // Two at once would only wait for each other's rooms.
    lanes: 1,
    flush: (writes) =>
      inTransaction(async (tx) => {
        const { now, rooms } = await states.open(tx, writes)
        const written = writes.map(({ room, batch }) => decideBatch(roomOf(rooms, room), batch, now))
        await states.close(tx, [...rooms.values()])
        return written
      }),
    sizeOf: ({ batch: { merged, sends } }) => [...merged, ...sends].reduce((sum, each) => sum + sizeOf(each), 0),
    isSpoiled: isStatementSpoiled,
  })

  return {
    open: (room) => openRoom(query, region, room, ownLog),
    enter: (room, claim) => inTransaction((tx) => enter(tx, sql.dialect, sql.now, { region, room, claim })),
    async write(room, batch) {
      const written = await group.write({ room, batch })
      const last = written.stored.at(-1)
      if (last !== undefined) ear.wrote(room, last.at)
      return written
    },
    find: (room, position) => find(query, elements(sql.dialect), { region, room, position }),
    async read(room, after, { entries, bytes }) {
      // The bytes before a row, so that the first one always fits, however large it is.
      const statement = `select ${ENTRY_COLUMNS} from (
          select ${ENTRY_COLUMNS}, sum(bytes) over (order by at) - bytes as before_bytes from (
            select ${ENTRY_COLUMNS}, bytes from onceonly_stream_entries
            where region = ? and room = ? and at > ? order by at limit ?) as next) as fit
        where before_bytes < ? order by at`
      return (await query<EntryRow>(statement, [region, room, after, entries, bytes])).map(entryOf)
    },
    async sender(room, client, senderEpoch) {
      const [row] = await query<SenderRow>(SENDER, [region, room, client, senderEpoch])
      return row === undefined ? null : senderOf(row)
    },
    async due(againMs, most) {
      // Nothing is, nearly always, and a question takes no writer.
      if ((await query(anyDue(sql), [region])).length === 0) return []
      const rows = await query<{ room: string }>(due(sql), [region, most, againMs, region])
      return rows.map(({ room }) => room)
    },
    async trim(room, keep) {
      await prepare()
      return trim(room, keep)
    },
    image: (room) => inTransaction((tx) => imageOf(tx, sql, { region, room })),
    adopt: (room, image) => inTransaction((tx) => adopt(tx, sql, { region, room, ownLog, image })),
    listen: ear.listen,
  }
}

type Query = <Row>(statement: string, values: readonly (string | number)[]) => Promise<readonly Row[]>

type SenderRow = RowOf<'last_log', 'floor' | 'last_n'>

const SENDER = `select floor, last_log, last_n from onceonly_stream_senders
  where region = ? and room = ? and client = ? and epoch = ?`

function senderOf({ floor, last_log, last_n }: SenderRow): SenderState {
  return { floor: Number(floor), last: { log: last_log, n: Number(last_n) } }
}

/** One statement, so that head and position are of one moment. */
async function openRoom(query: Query, region: string, room: string, ownLog: string): Promise<RoomState> {
  const rows = await query<{ own: string; at: unknown; log: string | null; head: unknown }>(
    `select r.log as own, r.at, l.log, l.head from onceonly_stream_rooms as r
      left join onceonly_stream_logs as l on l.region = r.region and l.room = r.room
      where r.region = ? and r.room = ?`,
    [region, room],
  )
  const [first] = rows
  if (first === undefined) {
    // Made now: its own log must have one name from the first look on.
    await query(
      'insert into onceonly_stream_rooms (region, room, log, at) values (?, ?, ?, 0) on conflict do nothing',
      [region, room, ownLog],
    )
    return openRoom(query, region, room, ownLog)
  }
  const position: Record<string, number> = {}
  for (const { log, head } of rows) if (log !== null) position[log] = Number(head)
  return { log: first.own, position, at: Number(first.at) }
}

interface Entering {
  readonly region: string
  readonly room: string
  readonly claim: SessionClaim
}

/** The row is locked while it is judged, so that of two that enter at once one is the later. */
async function enter(
  tx: SqlTx,
  dialect: RoomDialect,
  now: string,
  { region, room, claim }: Entering,
): Promise<Entered> {
  const { client, epoch, generation, instance } = claim
  const where = 'where region = ? and room = ? and client = ?'
  const place = [region, room, client]
  await tx.query(
    `insert into onceonly_stream_sessions (region, room, client, generation, instance, seen_at)
      values (?, ?, ?, 0, '', ${now}) on conflict do nothing`,
    place,
  )
  const hold = dialect.lock('for update')
  const [row] = await tx.query<{ generation: unknown; instance: string }>(
    `select generation, instance from onceonly_stream_sessions ${where} ${hold}`,
    place,
  )
  const before = Number(row?.generation)
  if (before > generation) return { kind: 'fenced', generation: before }
  if (before === generation && row?.instance !== instance) return { kind: 'cloned' }
  await tx.query(`update onceonly_stream_sessions set generation = ?, instance = ?, seen_at = ${now} ${where}`, [
    generation,
    instance,
    ...place,
  ])
  const [sender] = await tx.query<SenderRow>(SENDER, [...place, epoch])
  return { kind: 'entered', sender: sender === undefined ? null : senderOf(sender) }
}

/** A reader continues at the first entry, of any log, that its position lacks. */
async function find(
  query: Query,
  list: string,
  { region, room, position }: { readonly region: string; readonly room: string; readonly position: Position },
): Promise<FoundPosition> {
  const counts = Object.entries(position).map(([log, n]) => ({ log, n }))
  const count = `coalesce(cast(e.value->>'n' as bigint), 0)`
  const rows = await query<{ log: string; trimmed: unknown; count: unknown; at: unknown; head: unknown }>(
    `select l.log, l.trimmed, ${count} as count, r.at as head,
        (select m.at from onceonly_stream_entries as m
          where m.region = l.region and m.room = l.room and m.log = l.log and m.n = ${count} + 1) as at
      from onceonly_stream_logs as l
      join onceonly_stream_rooms as r on r.region = l.region and r.room = l.room
      left join ${list} on ${text('log')} = l.log
      where l.region = ? and l.room = ?`,
    [JSON.stringify(counts), region, room],
  )
  if (rows.some(({ count: have, trimmed }) => Number(have) < Number(trimmed))) {
    const removed = rows.filter(({ trimmed }) => Number(trimmed) > 0).map(({ log, trimmed }) => [log, Number(trimmed)])
    return { kind: 'expired', removed: Object.fromEntries(removed) }
  }
  let at = Number(rows[0]?.head ?? 0)
  for (const row of rows) {
    if (row.at !== null) at = Math.min(at, Number(row.at) - 1)
  }
  return { kind: 'found', at }
}
