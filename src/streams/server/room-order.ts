import type { Runtime, Timer } from '../../runtime/runtime.ts'
import type { Slots } from '../../runtime/slots.ts'
import type { StreamBounds } from '../bounds.ts'
import { countOf } from '../parts/count.ts'
import type { OrderLog, OrderRow, RoomLog, StoredEntry } from '../ports.ts'
import { covers, furthest, withCause } from '../protocol/position.ts'
import type { MessageIdentity, Position } from '../protocol/protocol.ts'
import { Doze } from './doze.ts'
import type { Room } from './room.ts'
import { Tail } from './tail.ts'

/** The final order of one room, as this region sees it; and, while it holds the room's lease, as it makes it. */
export interface RoomOrder {
  readonly tail: Tail<OrderRow>
  /** Rows after this number, from memory or from the store. */
  read(after: number): Promise<readonly OrderRow[]>
  /** The room has new entries. */
  advanced(): void
  stop(): void
}

export interface RoomOrderOptions {
  readonly room: Room
  readonly log: RoomLog
  readonly order: OrderLog
  readonly runtime: Runtime
  readonly bounds: StreamBounds
  readonly work: Slots
  /** Names this process among all that may hold the lease. */
  readonly holder: string
  /** There are new rows. */
  ordered(): void
  failed(error: unknown): void
}

interface Lease {
  readonly fence: number
  /** In the order in which entries were merged here: everything up to it has its place. */
  at: number
  /** What has its place, in whatever region it got it. */
  position: Position
}

/**
 * The lease holder assigns places in the order in which entries were merged there; its successor continues with the entries
 * that have none yet, in its own order. Both orders put causes first, and what has a place is a prefix of every log, so that
 * no message ever stands above its cause.
 *
 * A region may lack messages without a place: it removed them, or adopted an image instead of them. It gives no place to
 * what comes after them, and gives way to a region that still has them.
 */
export function createRoomOrder(options: RoomOrderOptions): RoomOrder {
  const { room, log, order, runtime, bounds, work, holder, ordered, failed } = options
  const tail = new Tail<OrderRow>({ most: bounds.tailEntries }, 0)
  let lease: Lease | null = null
  let busy = false
  let again = false
  let stopped = false
  let timer: Timer | null = null
  let claimAtMs = 0
  /** What had its place when this region gave way to others. */
  let gaveWayAt: Position | null = null
  const doze = new Doze(bounds.orderEveryMs, bounds.dozeMs)
  /** In this round places were given, or found. */
  let moved = false
  /** The last entry that was read from the log, and at which head. */
  let lastRead: { readonly at: number; readonly entry: StoredEntry | undefined } | null = null

  async function claim(): Promise<void> {
    if (runtime.monotonicMs() < claimAtMs) return
    claimAtMs = runtime.monotonicMs() + bounds.orderLeaseMs / 3
    const claimed = await order.claim(room.name, holder, bounds.orderLeaseMs)
    if (claimed.kind === 'taken') {
      lease = null
      return
    }
    if (lease?.fence === claimed.fence) return
    let { position } = claimed
    let found = await log.find(room.name, position)
    if (found.kind === 'expired') {
      lease = null
      if (gaveWayAt === null || !covers(gaveWayAt, position)) return giveWay(position)
      // No region has it any more. What was removed before it had a place never gets one: assigned later by a region that
      // comes back with it, it would stand behind what it caused.
      position = furthest(position, found.removed)
      found = await log.find(room.name, position)
    }
    // Expired again: more was removed in between, and the next claim reads again.
    lease = found.kind === 'found' ? { fence: claimed.fence, at: found.at, position } : null
    if (lease !== null) gaveWayAt = null
  }

  /** For as long as another region may need to look at the order again, and to wait for the end of a lost lease. */
  async function giveWay(position: Position): Promise<void> {
    gaveWayAt = position
    claimAtMs = runtime.monotonicMs() + bounds.dozeMs + bounds.orderLeaseMs
    await order.claim(room.name, holder, 0)
  }

  async function give(held: Lease): Promise<void> {
    while (held === lease && held.at < room.tail.head && !stopped) {
      const entries = await next(held.at)
      const last = entries.at(-1)
      if (last === undefined) return
      const position: Record<string, number> = { ...held.position }
      const identities: MessageIdentity[] = []
      for (const entry of entries) {
        if (entry.n <= countOf(held.position, entry.log)) continue
        if (!follows(entry, position)) {
          // The next claim finds out what is missing here.
          lease = null
          claimAtMs = 0
          return
        }
        position[entry.log] = entry.n
        if (!entry.copy) identities.push({ client: entry.client, epoch: entry.epoch, cseq: entry.cseq })
      }
      const { fence } = held
      const appended = await order.append(room.name, { fence, identities, position })
      if (appended.kind === 'lost') {
        lease = null
        return
      }
      held.at = last.at
      held.position = position
      moved = true
    }
  }

  async function next(after: number): Promise<readonly StoredEntry[]> {
    const near = room.tail.after(after, bounds.orderRows)
    return near ?? log.read(room.name, after, { entries: bounds.orderRows, bytes: bounds.pullBytes })
  }

  async function follow(): Promise<void> {
    for (;;) {
      const rows = await order.read(room.name, tail.head, bounds.orderRows)
      const [first] = rows
      if (first === undefined || stopped) return
      if (first.g !== tail.head + 1) tail.restart(first.g - 1)
      for (const row of rows) tail.push(row)
      moved = true
      ordered()
    }
  }

  async function lastEntry(): Promise<StoredEntry | undefined> {
    const { head } = room.tail
    const near = room.tail.after(head - 1, 1)
    if (near !== null) return near[0]
    if (lastRead?.at !== head) {
      const [entry] = await log.read(room.name, head - 1, { entries: 1, bytes: 1 })
      lastRead = { at: head, entry }
    }
    return lastRead?.entry
  }

  /** Whether the room's last entry has its place: who knows of one that has none does not doze. */
  async function settled(): Promise<boolean> {
    const last = await lastEntry()
    if (last === undefined) return true
    const same = ({ client, epoch, cseq }: OrderRow) =>
      client === last.client && epoch === last.epoch && cseq === last.cseq
    return tail.newest(bounds.tailEntries).some(same)
  }

  async function round(): Promise<void> {
    if (stopped) return
    moved = false
    try {
      do {
        again = false
        await claim()
        if (lease !== null) await give(lease)
        await follow()
      } while (again && !stopped)
      if (!moved && (await settled())) doze.nothing()
      else doze.stir()
    } catch (error) {
      // Whether it was written is not known: what has a place is passed over when it is given again.
      lease = null
      failed(error)
    }
  }

  function wake(): void {
    again = true
    if (busy || stopped) return
    busy = true
    timer?.cancel()
    void work.use(round).finally(() => {
      busy = false
      rest()
    })
  }

  function rest(): void {
    timer?.cancel()
    if (!stopped) timer = runtime.setTimer(doze.waitMs, wake, true)
  }

  wake()
  return {
    tail,
    async read(after) {
      return tail.after(after, bounds.orderRows) ?? order.read(room.name, after, bounds.orderRows)
    },
    advanced() {
      const dozed = doze.stir()
      if (lease !== null) wake()
      else if (dozed && !busy) rest()
    },
    stop() {
      stopped = true
      timer?.cancel()
    },
  }
}

/** Whether everything that comes before it has its place. */
function follows({ log, n, seen, after }: StoredEntry, position: Position): boolean {
  return n === countOf(position, log) + 1 && covers(position, withCause(seen, after))
}
