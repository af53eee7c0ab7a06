import { HOUR } from 'onceonly'
import { inTransaction } from '../messages/transaction.ts'
import type { Base } from '../store.ts'
import type { Quotas } from '../workspaces/quotas.ts'
import { rowSweep, type Sweep, unheld } from '../workspaces/retention.ts'
import { unlessFull } from './refusal.ts'
import type { ChatRetention } from './retention.ts'

/** The rooms that each workspace keeps. */
export interface KnownRooms {
  /** For a client that comes in: why it may not, or null. A room that is known already needs no more place. */
  enter(workspaceId: string, room: string): Promise<string | null>
  /** Whether it had a visitor lately: to look at any other would make one. */
  has(workspaceId: string, room: string): Promise<boolean>
  readonly sweep: Sweep
}

/** The time is written so often at most: a client that comes in every second is one visit. */
const SEEN_EVERY_MS = 1 * HOUR
/** Rooms that one step of the sweep removes. */
const SWEPT_ROOMS = 500

export function createKnownRooms(base: Base, quotas: Quotas, { namesMs }: Pick<ChatRetention, 'namesMs'>): KnownRooms {
  const { sql } = base
  const seen = `update chat_rooms set seen_at = ${sql.now} where workspace_id = ? and room = ? and seen_at < ${sql.now} - ?`
  const forget = `delete from chat_rooms where (workspace_id, room) in (
    select workspace_id, room from chat_rooms where seen_at < ${sql.now} - ? order by seen_at limit ? ${unheld(base)})
    returning room`

  async function has(workspaceId: string, room: string): Promise<boolean> {
    const text = 'select 1 from chat_rooms where workspace_id = ? and room = ?'
    return (await sql.query(text, [workspaceId, room])).length > 0
  }

  return {
    has,
    async enter(workspaceId, room) {
      if (await has(workspaceId, room)) {
        await sql.query(seen, [workspaceId, room, SEEN_EVERY_MS])
        return null
      }
      return unlessFull(() =>
        inTransaction(base, async (tx) => {
          await quotas.check(tx, workspaceId, { rooms: 1 })
          await tx.query(
            `insert into chat_rooms (workspace_id, room, seen_at) values (?, ?, ${sql.now}) on conflict do nothing`,
            [workspaceId, room],
          )
        }),
      )
    },
    sweep: rowSweep(base, 'chat rooms', forget, {
      values: [namesMs],
      most: SWEPT_ROOMS,
      from: { text: 'select min(seen_at) from chat_rooms', agoMs: namesMs },
    }),
  }
}
