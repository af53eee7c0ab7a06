import type { OrderAppended, OrderBatch, OrderClaim, OrderLog, OrderRow } from './ports.ts'
import { furthest } from './position.ts'
import type { Position } from './protocol.ts'
import { identityText } from './protocol.ts'

interface OrderedRoom {
  readonly rows: OrderRow[]
  readonly known: Set<string>
  position: Position
  holder: string | null
  fence: number
  untilMs: number
}

/** The final order in memory, for all regions of one process. */
export function createMemoryOrderLog({ nowMs }: { readonly nowMs: () => number }): OrderLog {
  const rooms = new Map<string, OrderedRoom>()

  function at(name: string): OrderedRoom {
    let room = rooms.get(name)
    if (room === undefined) {
      room = { rows: [], known: new Set(), position: {}, holder: null, fence: 0, untilMs: 0 }
      rooms.set(name, room)
    }
    return room
  }

  function claim(room: OrderedRoom, holder: string, leaseMs: number): OrderClaim {
    const free = room.holder === null || room.untilMs <= nowMs()
    if (room.holder !== holder && !free) return { kind: 'taken' }
    // A lease that lapsed gets a new fence even for its old holder: somebody may have thought that it was gone.
    if (room.holder !== holder || free) room.fence += 1
    room.holder = holder
    room.untilMs = nowMs() + leaseMs
    return { kind: 'held', fence: room.fence, position: room.position, head: room.rows.length }
  }

  function append(room: OrderedRoom, { fence, identities, position }: OrderBatch): OrderAppended {
    if (room.fence !== fence) return { kind: 'lost' }
    for (const { client, epoch, cseq } of identities) {
      const text = identityText({ client, epoch, cseq })
      if (room.known.has(text)) continue
      room.known.add(text)
      room.rows.push({ g: room.rows.length + 1, client, epoch, cseq })
    }
    room.position = furthest(room.position, position)
    return { kind: 'appended', head: room.rows.length }
  }

  return {
    claim: async (room, holder, leaseMs) => claim(at(room), holder, leaseMs),
    append: async (room, batch) => append(at(room), batch),
    read: async (room, after, most) => at(room).rows.slice(after, after + most),
  }
}
