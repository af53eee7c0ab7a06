import type { Runtime, Timer } from '../ledger/runtime.ts'
import type { StreamBounds } from './bounds.ts'
import type { Exchange, Fork, OrderLog, RegionHint, RoomLog, StoredEntry } from './ports.ts'
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

/** The rooms that a region has open: from the first client, or the first word of a peer, until they were empty for a while. */
export interface RegionRooms {
  open(name: string): Promise<HostedRoom>
  hinted(hint: Extract<RegionHint, { kind: 'position' }>): void
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
  problem(error: unknown): void
  ordered(hosted: HostedRoom): void
  forked(room: string, fork: Fork): void
}

export function createRegionRooms(options: RegionRoomsOptions): RegionRooms {
  const { region, log, order, exchange, runtime, bounds, problem } = options
  const rooms = new Map<string, Promise<HostedRoom>>()
  const usedAtMs = new Map<string, number>()
  const holder = `${region}.${runtime.newId()}`
  const sweep = createRoomSweep(options)
  let stopped = false

  async function start(name: string): Promise<HostedRoom> {
    const accepted = (entries: readonly StoredEntry[]) => {
      const fresh = entries.map(({ at: _at, copy: _copy, ...entry }) => entry)
      exchange?.hint({ kind: 'position', region, room: name, position: room.position, entries: fresh })
    }
    const forked = (fork: Fork) => options.forked(name, fork)
    const room = await openRoom({ name, log, runtime, bounds, accepted, forked, failed: problem })
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
        : createRoomOrder({ room, log, order, runtime, bounds, holder, ordered, failed: problem })
    if (roomOrder !== null) room.watch(() => roomOrder.advanced())
    const keeping = keep(name, room, () => hosted.stop())
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
  function keep(name: string, room: Room, close: () => void): { stop(): void } {
    let timer: Timer
    const round = () => {
      timer = runtime.setTimer(bounds.pullEveryMs, round, true)
      room.look()
      if (room.members > 0) usedAtMs.set(name, runtime.monotonicMs())
      if (runtime.monotonicMs() - (usedAtMs.get(name) ?? 0) > bounds.roomIdleMs) {
        rooms.delete(name)
        usedAtMs.delete(name)
        return close()
      }
    }
    timer = runtime.setTimer(bounds.pullEveryMs, round, true)
    return { stop: () => timer.cancel() }
  }

  function open(name: string): Promise<HostedRoom> {
    usedAtMs.set(name, runtime.monotonicMs())
    let opening = rooms.get(name)
    if (opening === undefined) {
      opening = start(name)
      rooms.set(name, opening)
      // Whoever comes next tries again.
      opening.catch(() => void rooms.delete(name))
    }
    return opening
  }

  return {
    open,
    hinted({ region: peer, room: name, position, entries }) {
      open(name)
        .then(({ room, pullers }) => {
          room.offer(entries)
          pullers.get(peer)?.hinted(position)
        })
        .catch(problem)
    },
    stop() {
      stopped = true
      sweep.stop()
      for (const opening of rooms.values()) opening.then((hosted) => hosted.stop()).catch(() => {})
      rooms.clear()
      usedAtMs.clear()
    },
  }
}
