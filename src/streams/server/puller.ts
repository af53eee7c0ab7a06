import type { Runtime, Timer } from '../../runtime/runtime.ts'
import type { StreamBounds } from '../bounds.ts'
import type { Exchange } from '../ports.ts'
import { covers } from '../protocol/position.ts'
import type { Position } from '../protocol/protocol.ts'
import { Doze } from './doze.ts'
import type { Room } from './room.ts'

/** Pulls what one peer has of a room, continuously. */
export interface Puller {
  /** The peer has come so far. */
  hinted(position: Position): void
  /** How long the peer has left a pull unanswered; 0 while it answers. */
  readonly silentMs: number
  stop(): void
}

export interface PullerOptions {
  readonly peer: string
  readonly room: Room
  readonly exchange: Exchange
  readonly runtime: Runtime
  readonly bounds: StreamBounds
  failed(error: unknown): void
}

export function createPuller({ peer, room, exchange, runtime, bounds, failed }: PullerOptions): Puller {
  let busy = false
  let again = false
  let stopped = false
  /** All that came waits for something else, or more than enough waits to be written. */
  let stalled = false
  let failures = 0
  let timer: Timer | null = null
  const doze = new Doze(bounds.pullEveryMs, bounds.dozeMs)
  /** When the first pull began that has no answer yet, or failed with all those after it. */
  let unansweredSinceMs: number | null = null
  /** Since when entries wait for causes that did not come. */
  let stuckSinceMs: number | null = null

  /** Pulls entries of all regions when the missing ones did not come from their own region. */
  function detour(): boolean {
    const nowMs = runtime.monotonicMs()
    if (Object.keys(room.missing).length === 0) stuckSinceMs = null
    else stuckSinceMs ??= nowMs
    return stuckSinceMs !== null && nowMs - stuckSinceMs >= bounds.detourMs
  }

  async function pullOn(): Promise<void> {
    do {
      again = false
      stalled = room.crowded
      if (stalled) return
      const { reached } = room
      unansweredSinceMs ??= runtime.monotonicMs()
      const answer = await exchange.pull(peer, { room: room.name, position: reached, all: detour() })
      if (stopped) return
      failures = 0
      unansweredSinceMs = null
      if (answer.kind === 'expired') return room.adopt(answer.image)
      if (answer.entries.length === 0) {
        if (Object.keys(room.missing).length === 0) doze.nothing()
        continue
      }
      doze.stir()
      room.offer(answer.entries)
      // When none of them could be applied, pulling at once would only bring the same ones again.
      if (covers(reached, room.reached)) stalled = true
      else again = true
    } while (again)
  }

  function wake(): void {
    if (busy) {
      again = true
      return
    }
    if (stopped) return
    busy = true
    timer?.cancel()
    void pullOn()
      .catch((error: unknown) => {
        failures += 1
        failed(error)
      })
      .finally(() => {
        busy = false
        rest()
      })
  }

  function rest(): void {
    timer?.cancel()
    if (!stopped) timer = runtime.setTimer(waitMs(), wake, true)
  }

  function waitMs(): number {
    if (failures === 0) return doze.waitMs
    return Math.min(bounds.pullRetryCapMs, bounds.pullRetryBaseMs * 2 ** (failures - 1))
  }

  room.watch(() => {
    const dozed = doze.stir()
    if (stalled && !room.crowded && Object.keys(room.missing).length === 0) wake()
    else if (dozed && !busy) rest()
  })
  wake()
  return {
    hinted(position) {
      const { [room.ownLog]: _own, ...others } = position
      // A peer that is down is retried at its next turn, or as soon as it sends a hint.
      if (!stalled && !covers(room.reached, others)) wake()
    },
    get silentMs() {
      return unansweredSinceMs === null ? 0 : runtime.monotonicMs() - unansweredSinceMs
    },
    stop() {
      stopped = true
      timer?.cancel()
    },
  }
}
