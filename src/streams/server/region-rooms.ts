import type { Runtime, Timer } from '../../runtime/runtime.ts'
import type { Slots } from '../../runtime/slots.ts'
import type { StreamBounds } from '../bounds.ts'
import type { Exchange, Fork, OrderLog, RegionHint, RoomLog, StoredEntry } from '../ports.ts'
import { Doze } from './doze.ts'
import type { Puller } from './puller.ts'
import { createPuller } from './puller.ts'
import type { Room } from './room.ts'
import { openRoom } from './room.ts'
import type { RoomOrder } from './room-order.ts'
import { createRoomOrder } from './room-order.ts'
import { createRoomSweep } from './room-sweep.ts'

/** A room with everything that keeps it going. */
export interface HostedRoom {
  readonly room: Room
  readonly order: RoomOrder | null
  readonly pullers: ReadonlyMap<string, Puller>
  stop(): void
}

/**
 * The rooms that a region has open: from the first client, or the first hint of a peer, until they were empty for a while.
 */
export interface RegionRooms {
  /** For a client that joins; null when the limit of open rooms is reached and none of them is empty. */
  open(name: string): Promise<HostedRoom> | null
  hinted(hint: Extract<RegionHint, { kind: 'position' }>): void
  /** How long a peer has not answered, for the open room that has waited longest. */
  silentMs(peer: string): number
  stop(): void
}

export interface RegionRoomsOptions {
  readonly region: string
  readonly log: RoomLog
  readonly order?: OrderLog
  readonly exchange?: Exchange
  readonly peers?: readonly string[]
  readonly runtime: Runtime
  readonly bounds: StreamBounds
  /**
   * For background work of rooms on their logs. It never waits for the network, so that a peer that is down holds no
   * slot.
   */
  readonly work: Slots
  problem(error: unknown): void
  ordered(hosted: HostedRoom): void
  forked(room: string, fork: Fork): void
}

interface Kept {
  readonly opening: Promise<HostedRoom>
  /** Null until it is open. */
  hosted: HostedRoom | null
  /** When a client was last in it, or a peer last named it. */
  usedAtMs: number
  /** When a client last joined it. */
  cameAtMs: number
}

export function createRegionRooms(options: RegionRoomsOptions): RegionRooms {
  const { region, log, order, exchange, runtime, bounds, work, problem } = options
  const rooms = new Map<string, Kept>()
  const holder = `${region}.${runtime.newId()}`
  const sweep = createRoomSweep(options)
  let stopped = false

  async function start(name: string): Promise<HostedRoom> {
    const accepted = (entries: readonly StoredEntry[]) => {
      const fresh = entries.map(({ at: _at, copy: _copy, ...entry }) => entry)
      exchange?.hint({ kind: 'position', region, room: name, position: room.position, entries: fresh })
    }
    const forked = (fork: Fork) => options.forked(name, fork)
    const room = await work.use(() => openRoom({ name, log, runtime, bounds, accepted, forked, failed: problem }))
    const pullers = new Map<string, Puller>()
    if (exchange !== undefined) {
      for (const peer of options.peers ?? []) {
        pullers.set(peer, createPuller({ peer, room, exchange, runtime, bounds, failed: problem }))
      }
    }
    const ordered = () => options.ordered(hosted)
    const roomOrder =
      order === undefined
        ? null
        : createRoomOrder({ room, log, order, runtime, bounds, work, holder, ordered, failed: problem })
    if (roomOrder !== null) room.watch(() => roomOrder.advanced())
    const keeping = keep(name, room)
    const hosted: HostedRoom = {
      room,
      order: roomOrder,
      pullers,
      stop() {
        keeping.stop()
        for (const puller of pullers.values()) puller.stop()
        roomOrder?.stop()
        room.stop()
      },
    }
    if (stopped) hosted.stop()
    return hosted
  }

  /** Looks now and then at what other processes wrote, and closes a room without people. */
  function keep(name: string, room: Room): { stop(): void } {
    let timer: Timer
    const doze = new Doze(bounds.pullEveryMs, bounds.dozeMs)
    let lookAtMs = 0
    room.watch(() => {
      if (doze.stir()) lookAtMs = 0
    })
    const round = () => {
      timer = runtime.setTimer(bounds.pullEveryMs, round, true)
      if (runtime.monotonicMs() >= lookAtMs) {
        room.look()
        doze.nothing()
        lookAtMs = runtime.monotonicMs() + doze.waitMs
      }
      const kept = rooms.get(name)
      if (kept === undefined) return
      if (room.members > 0) kept.usedAtMs = runtime.monotonicMs()
      if (runtime.monotonicMs() - kept.usedAtMs > bounds.roomIdleMs) close(name)
    }
    timer = runtime.setTimer(bounds.pullEveryMs, round, true)
    return { stop: () => timer.cancel() }
  }

  function close(name: string): void {
    rooms.get(name)?.hosted?.stop()
    rooms.delete(name)
  }

  function openNew(name: string): Kept {
    const nowMs = runtime.monotonicMs()
    const opening = start(name)
    const kept: Kept = { opening, hosted: null, usedAtMs: nowMs, cameAtMs: Number.NEGATIVE_INFINITY }
    rooms.set(name, kept)
    opening.then(
      (hosted) => {
        kept.hosted = hosted
      },
      // The next caller tries again.
      () => void rooms.delete(name),
    )
    return kept
  }

  /** The least recently used room without clients and without a client about to join. */
  function emptiest(): string | null {
    const cameBeforeMs = runtime.monotonicMs() - bounds.enterMs
    let found: { readonly name: string; readonly usedAtMs: number } | null = null
    for (const [name, { hosted, usedAtMs, cameAtMs }] of rooms) {
      if (hosted === null || hosted.room.members > 0 || cameAtMs > cameBeforeMs) continue
      if (found === null || usedAtMs < found.usedAtMs) found = { name, usedAtMs }
    }
    return found?.name ?? null
  }

  /** A joining client may cause another room to be closed; a hint opens a room only below the limit. */
  function find(name: string, comes: boolean): Kept | null {
    const known = rooms.get(name)
    if (known !== undefined) return known
    if (rooms.size < bounds.openRooms) return openNew(name)
    const empty = comes ? emptiest() : null
    if (empty === null) return null
    close(empty)
    return openNew(name)
  }

  return {
    open(name) {
      const kept = find(name, true)
      if (kept === null) return null
      kept.usedAtMs = kept.cameAtMs = runtime.monotonicMs()
      return kept.opening
    },
    hinted({ region: peer, room: name, position, entries }) {
      const kept = find(name, false)
      // It is pulled when a client joins.
      if (kept === null) return
      kept.usedAtMs = runtime.monotonicMs()
      kept.opening
        .then(({ room, pullers }) => {
          if (!room.crowded) room.offer(entries)
          pullers.get(peer)?.hinted(position)
        })
        .catch(problem)
    },
    silentMs(peer) {
      let most = 0
      for (const { hosted } of rooms.values()) most = Math.max(most, hosted?.pullers.get(peer)?.silentMs ?? 0)
      return most
    },
    stop() {
      stopped = true
      sweep.stop()
      for (const { opening } of rooms.values()) opening.then((hosted) => hosted.stop()).catch(() => {})
      rooms.clear()
    },
  }
}
