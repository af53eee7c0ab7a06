import type { SqlSeam } from '../../ledger/store/sql.ts'
import type { Watch } from '../../ledger/store/watch.ts'
import { type Runtime, sleep } from '../../runtime/runtime.ts'
import { elements, joining, text } from './sql-rows.ts'

/** Notifies rooms that another process wrote to them. */
export interface RoomEar {
  listen(room: string, wake: () => void): { stop(): void }
  /** This process wrote up to here: no notification is needed. */
  wrote(room: string, at: number): void
}

/**
 * A look costs as much as there are rooms, and on SQLite every commit asks for one: after each, so many times as long as
 * it took belong to others; a process may have several regions. The first after a rest comes at once.
 */
const REST_TIMES = 40
/** However long a poll took, rooms learn of writes within this time. */
const REST_MOST_MS = 500

interface Heard {
  /** How far the room was when it was last looked at; null before that. */
  at: number | null
  readonly wakes: Set<() => void>
}

/**
 * One poll for all open rooms. A wake is for a whole region, on SQLite for every commit: would each room read its
 * log then, a message in one of them would cost as many statements as there are rooms.
 */
export function createRoomEar(options: {
  readonly sql: SqlSeam
  readonly region: string
  readonly topic: string
  readonly runtime: Runtime
  query<Row>(statement: string, values: readonly string[]): Promise<readonly Row[]>
}): RoomEar {
  const { sql, region, topic, runtime, query } = options
  const rooms = new Map<string, Heard>()
  const heads = `select r.room, r.at from ${elements(sql.dialect)}
    ${joining(sql.dialect)} onceonly_stream_rooms as r on r.region = ? and r.room = ${text('room')}`
  let listening: Watch | null = null
  let busy = false
  let again = false

  async function look(): Promise<void> {
    const list = JSON.stringify([...rooms.keys()].map((room) => ({ room })))
    for (const row of await query<{ room: string; at: unknown }>(heads, [list, region])) {
      const heard = rooms.get(row.room)
      const at = Number(row.at)
      if (heard === undefined || at <= (heard.at ?? -1)) continue
      heard.at = at
      for (const wake of heard.wakes) wake()
    }
  }

  async function lookOn(): Promise<void> {
    busy = true
    try {
      do {
        again = false
        const begunMs = runtime.monotonicMs()
        await look()
        const tookMs = runtime.monotonicMs() - begunMs
        await sleep(runtime, Math.min(REST_MOST_MS, REST_TIMES * tookMs), true)
      } while (again)
    } catch {
      // A store that is down loses only hints: rooms also poll.
    } finally {
      busy = false
    }
  }

  return {
    listen(room, wake) {
      const heard = rooms.get(room) ?? { at: null, wakes: new Set() }
      rooms.set(room, heard)
      heard.wakes.add(wake)
      listening ??= sql.listen(topic, (cause) => {
        // Where writes to rooms are notified, other changes of a busy database are not worth a look; rooms also poll.
        if (cause === 'change' && sql.dialect.notifies) return
        again = true
        if (!busy) void lookOn()
      })
      return {
        stop() {
          heard.wakes.delete(wake)
          if (heard.wakes.size === 0 && rooms.get(room) === heard) rooms.delete(room)
          if (rooms.size > 0) return
          listening?.stop()
          listening = null
        },
      }
    },
    wrote(room, at) {
      const heard = rooms.get(room)
      if (heard !== undefined) heard.at = Math.max(heard.at ?? 0, at)
    },
  }
}
