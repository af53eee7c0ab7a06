import type { OrderAppended, OrderBatch, OrderClaim, OrderLog, OrderRow, Retention, Trimmed } from '../ports.ts'
import { furthest } from '../protocol/position.ts'
import type { MessageIdentity, Position } from '../protocol/protocol.ts'
import { identityText } from '../protocol/protocol.ts'

interface OrderedRoom {
  readonly rows: (OrderRow & { readonly addedAtMs: number })[]
  /** So many were removed before the first of the rows. */
  removed: number
  readonly known: Set<string>
  position: Position
  holder: string | null
  fence: number
  untilMs: number
}

/**
 * The final order in memory, for all regions of one process.
 *
 * @example
 * ```ts
 * import { createMemoryOrderLog } from 'onceonly/stream/ports'
 *
 * const order = createMemoryOrderLog({ nowMs: Date.now })
 * ```
 */
export function createMemoryOrderLog({ nowMs }: { readonly nowMs: () => number }): OrderLog {
  const rooms = new Map<string, OrderedRoom>()

  function at(name: string): OrderedRoom {
    let room = rooms.get(name)
    if (room === undefined) {
      room = { rows: [], removed: 0, known: new Set(), position: {}, holder: null, fence: 0, untilMs: 0 }
      rooms.set(name, room)
    }
    return room
  }

  function claim(room: OrderedRoom, holder: string, leaseMs: number): OrderClaim {
    const free = room.holder === null || room.untilMs <= nowMs()
    if (room.holder !== holder && !free) return { kind: 'taken' }
    // A lapsed lease gets a new fence even for its old holder: another process may have taken it for gone.
    if (room.holder !== holder || free) room.fence += 1
    room.holder = holder
    room.untilMs = nowMs() + leaseMs
    return { kind: 'held', fence: room.fence, position: room.position, head: headOf(room) }
  }

  function append(room: OrderedRoom, { fence, identities, position }: OrderBatch): OrderAppended {
    if (room.holder === null || room.fence !== fence) return { kind: 'lost' }
    for (const { client, epoch, cseq } of identities) {
      const text = identityText({ client, epoch, cseq })
      if (room.known.has(text)) continue
      room.known.add(text)
      room.rows.push({ g: headOf(room) + 1, client, epoch, cseq, addedAtMs: nowMs() })
    }
    room.position = furthest(room.position, position)
    return { kind: 'appended', head: headOf(room) }
  }

  function read(room: OrderedRoom, after: number, most: number): readonly OrderRow[] {
    const from = Math.max(0, after - room.removed)
    return room.rows.slice(from, from + most).map(({ addedAtMs: _addedAtMs, ...row }) => row)
  }

  function places(room: OrderedRoom, identities: readonly MessageIdentity[]): readonly OrderRow[] {
    const wanted = new Set(identities.map(identityText))
    return read(room, 0, room.rows.length).filter((row) => wanted.has(identityText(row)))
  }

  function trim(
    room: OrderedRoom,
    { olderThanMs, mostEntries }: Pick<Retention, 'olderThanMs' | 'mostEntries'>,
  ): Trimmed {
    const surplus = room.rows.length - mostEntries
    const kept = room.rows.findIndex(({ addedAtMs }, index) => index >= surplus && addedAtMs >= nowMs() - olderThanMs)
    const gone = room.rows.splice(0, kept === -1 ? room.rows.length : kept)
    for (const row of gone) room.known.delete(identityText(row))
    room.removed += gone.length
    return { removed: gone.length, more: false }
  }

  return {
    claim: async (room, holder, leaseMs) => claim(at(room), holder, leaseMs),
    append: async (room, batch) => append(at(room), batch),
    read: async (room, after, most) => read(at(room), after, most),
    places: async (room, identities) => places(at(room), identities),
    trim: async (room, keep) => trim(at(room), keep),
  }
}

/** The last number that was given. */
function headOf({ rows, removed }: OrderedRoom): number {
  return removed + rows.length
}
