import { limits } from '../../ledger/core/limits.ts'
import type { Page } from '../../ledger/store/port.ts'
import type { SqlSeam } from '../../ledger/store/sql.ts'
import { STREAM_ROOM } from '../../streams/log/sql-tables.ts'
import { countOf } from '../../streams/parts/count.ts'
import type { Position } from '../../streams/protocol/protocol.ts'
import type { Paging } from './dead-letters.ts'

/** What one region has of a room. */
export interface RegionCard {
  readonly region: string
  /** The log that this region itself writes. */
  readonly log: string
  /** How many entries of each log were merged here. */
  readonly position: Position
  /** Entries that other regions have and this one has not. */
  readonly behind: number
  /** Clients whose last session is remembered here. */
  readonly clients: number
  /** When the newest entry was stored here; null when there is none, or it was removed. */
  readonly lastAt: number | null
}

export interface RoomCard {
  readonly room: string
  /** Entries over all logs, as far as any region knows them. */
  readonly head: number
  readonly regions: readonly RegionCard[]
  /** The final order; null where the room has none. */
  readonly final: {
    readonly head: number
    /** Entries that have no final place yet. */
    readonly behind: number
    /** The process that adds to it; null when the lease has lapsed. */
    readonly holder: string | null
  } | null
}

/** Rooms of streams by their tables alone: where each region stands, and how far it lags. */
export interface Streams {
  /** By name. */
  rooms(page?: Paging): Promise<Page<RoomCard>>
  get(room: string): Promise<RoomCard | null>
}

interface RegionRow {
  readonly room: string
  readonly region: string
  readonly own: string
  readonly last_at: unknown
  readonly clients: unknown
}

interface LogRow {
  readonly room: string
  readonly region: string
  readonly log: string
  readonly head: unknown
}

interface OrderRow {
  readonly room: string
  readonly holder: string
  readonly head: unknown
  readonly position: string
  readonly held: unknown
}

export function createStreams(sql: SqlSeam, has: (room: string) => Promise<boolean>): Streams {
  async function cards(names: readonly string[]): Promise<readonly RoomCard[]> {
    if (names.length === 0) return []
    const among = `room IN (${names.map(() => '?').join(', ')})`
    const regions = await sql.query<RegionRow>(
      `SELECT r.room, r.region, r.log AS own,
          (SELECT e.stored_at FROM onceonly_stream_entries AS e
            WHERE e.region = r.region AND e.room = r.room AND e.at = r.at) AS last_at,
          (SELECT count(*) FROM onceonly_stream_sessions AS s WHERE s.region = r.region AND s.room = r.room) AS clients
        FROM onceonly_stream_rooms AS r WHERE r.${among} ORDER BY r.region`,
      names,
    )
    const logs = await sql.query<LogRow>(
      `SELECT room, region, log, head FROM onceonly_stream_logs WHERE ${among} ORDER BY log`,
      names,
    )
    const orders = await sql.query<OrderRow>(
      `SELECT room, holder, head, position, CASE WHEN free_at > ${sql.now} THEN 1 ELSE 0 END AS held
        FROM onceonly_stream_orders WHERE ${among}`,
      names,
    )
    return names.map((room) => {
      const of = <Row extends { readonly room: string }>(rows: readonly Row[]) =>
        rows.filter((row) => row.room === room)
      return cardOf(room, of(regions), of(logs), of(orders)[0])
    })
  }

  return {
    async rooms({ limit = limits.pageRows, cursor = null } = {}) {
      if (!(await has(STREAM_ROOM))) return { rows: [], cursor: null }
      const most = Math.min(Math.max(1, limit), limits.pageRows)
      const found = await sql.query<{ room: string }>(
        'SELECT DISTINCT room FROM onceonly_stream_rooms WHERE room > ? ORDER BY room LIMIT ?',
        [cursor ?? '', most],
      )
      const names = found.map(({ room }) => room)
      return { rows: await cards(names), cursor: names.length === most ? (names.at(-1) ?? null) : null }
    },
    async get(room) {
      if (!(await has(STREAM_ROOM))) return null
      const [card] = await cards([room])
      return card === undefined || card.regions.length === 0 ? null : card
    },
  }
}

function cardOf(
  room: string,
  regions: readonly RegionRow[],
  logs: readonly LogRow[],
  order: OrderRow | undefined,
): RoomCard {
  const heads = new Map<string, number>()
  for (const { log, head } of logs) heads.set(log, Math.max(heads.get(log) ?? 0, Number(head)))
  const missing = (position: Position) =>
    [...heads].reduce((sum, [log, head]) => sum + Math.max(0, head - countOf(position, log)), 0)
  return {
    room,
    head: missing({}),
    regions: regions.map(({ region, own, last_at: lastAt, clients }) => {
      const merged = logs.filter((row) => row.region === region).map(({ log, head }) => [log, Number(head)] as const)
      const position = Object.fromEntries(merged)
      const last = lastAt === null ? null : Number(lastAt)
      return { region, log: own, position, behind: missing(position), clients: Number(clients), lastAt: last }
    }),
    final: order === undefined ? null : finalOf(order, missing),
  }
}

function finalOf({ head, position, holder, held }: OrderRow, missing: (position: Position) => number) {
  return {
    head: Number(head),
    behind: missing(JSON.parse(position) as Position),
    holder: Number(held) === 1 ? holder : null,
  }
}
