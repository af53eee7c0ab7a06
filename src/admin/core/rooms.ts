import { isOnceError } from '../../ledger/core/errors.ts'
import type { SqlSeam } from '../../ledger/store/sql.ts'

/** The version of every room's tables; a room that was never used has none. */
export type Rooms = ReadonlyMap<string, number>

export async function roomsOf(sql: SqlSeam): Promise<Rooms> {
  const rows = await sql.query<{ room: string; version: unknown }>(
    'SELECT room, max(version) AS version FROM onceonly_migrations GROUP BY room ORDER BY room',
  )
  return new Map(rows.map(({ room, version }) => [room, Number(version)]))
}

/** Rooms come into being at any time, but never go; so a room that was there once is not looked for again. */
export function createRoomCheck(sql: SqlSeam): (room: string) => Promise<boolean> {
  let known: Rooms = new Map()
  return async (room) => {
    if (known.has(room)) return true
    try {
      known = await roomsOf(sql)
    } catch (error) {
      // A store on which nothing ever ran has not even the table that lists them.
      if (isOnceError(error, 'store_unavailable')) throw error
      return false
    }
    return known.has(room)
  }
}
