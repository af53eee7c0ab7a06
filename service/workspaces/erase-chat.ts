import type { ErasedOwner } from 'onceonly/admin'
import { prefixOf } from '../chat/words.ts'
import { inTransaction } from '../messages/transaction.ts'
import type { Base } from '../store.ts'
import { createOwnRows, hasRoom, type Selection } from './erase-rows.ts'

/** Everything that streams keep of a room. The room itself is first: its row keeps writers of the room away. */
const TABLES = ['rooms', 'logs', 'entries', 'senders', 'published', 'sessions', 'orders', 'order_rows']

/** Rooms of the chat with what was said in them, and the names that callers took there. */
export interface ChatRemoval {
  count(owner: Workspace): Promise<ChatCounts>
  remove(owner: Workspace, progress: () => void): Promise<ChatCounts>
}

type Workspace = Extract<ErasedOwner, { kind: 'workspace' }>

interface ChatCounts {
  readonly 'chat rooms': number
  readonly 'chat names': number
}

export function createChatRemoval(base: Base): ChatRemoval {
  const { sql } = base
  const rows = createOwnRows(base)
  const own = ({ tenant }: Workspace): Selection => ({ text: 'workspace_id = ?', values: [tenant] })

  /** The list of a workspace forgets rooms without visitors earlier than streams do. */
  async function roomsOf({ tenant }: Workspace): Promise<readonly string[]> {
    if (!(await hasRoom(sql, 'stream'))) return []
    const found = await sql.query<{ room: string }>(
      `select room from onceonly_stream_rooms where room like ? union select room from onceonly_stream_orders where room like ?`,
      [`${prefixOf(tenant)}%`, `${prefixOf(tenant)}%`],
    )
    return found.map(({ room }) => room)
  }

  return {
    count: async (owner) => ({
      'chat rooms': (await roomsOf(owner)).length,
      'chat names': await rows.count('chat_clients', own(owner)),
    }),
    async remove(owner, progress) {
      const rooms = await roomsOf(owner)
      for (const room of rooms) {
        await inTransaction(base, async (tx) => {
          for (const table of TABLES) await tx.query(`delete from onceonly_stream_${table} where room = ?`, [room])
        })
        progress()
      }
      await rows.remove('chat_rooms', 'workspace_id, room', own(owner), progress)
      return {
        'chat rooms': rooms.length,
        'chat names': await rows.remove('chat_clients', 'workspace_id, client', own(owner), progress),
      }
    },
  }
}
