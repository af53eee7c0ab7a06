import type { Runtime, Timer } from '../../runtime/runtime.ts'
import type { StreamBounds } from '../bounds.ts'
import type { OrderLog, RoomLog, Trimmed } from '../ports.ts'

export interface RoomSweepOptions {
  readonly log: RoomLog
  readonly order?: OrderLog
  readonly runtime: Runtime
  readonly bounds: StreamBounds
  problem(error: unknown): void
}

/** Removes what is past its time, in open rooms and in abandoned ones. */
export function createRoomSweep({ log, order, runtime, bounds, problem }: RoomSweepOptions): { stop(): void } {
  const { retainMs: olderThanMs, retainEntries: mostEntries, retainClientsMs: clientsMs, sweepRooms } = bounds
  // What is kept is recognised, too: it may be replied to.
  const publishedMs = Math.max(bounds.retainPublishedMs, olderThanMs)
  const mostPublished = Math.max(bounds.retainPublished, mostEntries)
  let stopped = false
  let timer: Timer = next()

  function next(): Timer {
    return runtime.setTimer(bounds.trimEveryMs, () => void round(), true)
  }

  /** However much there is: a room that is filled faster than one transaction empties it must not grow forever. */
  async function whole(trim: () => Promise<Trimmed>): Promise<void> {
    while (!stopped && (await trim()).more);
  }

  async function sweep(room: string): Promise<void> {
    await whole(() => log.trim(room, { olderThanMs, mostEntries, clientsMs, publishedMs, mostPublished }))
    if (order !== undefined) {
      await whole(() => order.trim(room, { olderThanMs: bounds.orderRetainMs, mostEntries }))
    }
  }

  async function round(): Promise<void> {
    try {
      let due: readonly string[]
      do {
        due = await log.due(bounds.trimEveryMs, sweepRooms)
        for (const room of due) await sweep(room).catch(problem)
      } while (due.length > 0 && !stopped)
    } catch (error) {
      problem(error)
    }
    if (!stopped) timer = next()
  }

  return {
    stop() {
      stopped = true
      timer.cancel()
    },
  }
}
