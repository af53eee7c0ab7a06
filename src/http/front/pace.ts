import type { Runtime, Timer } from '../../runtime/runtime.ts'
import { createRuntime } from '../../runtime/runtime.ts'

/** How slowly a body may come. */
export interface Pace {
  /** For so long its speed does not count. */
  readonly graceMs: number
  /** Over all the time after that. */
  readonly bytesPerSecond: number
  /** For so long nothing of it may come. */
  readonly pauseMs: number
}

/** A body on its way. */
export interface PacedBody {
  readonly pace: Pace
  /** What has come. */
  bytes(): number
  /** It is not being read for the moment, so that its sender is not the slow side. */
  isHeld(): boolean
  /** It comes too slowly, and is not watched any more. */
  tooSlow(): void
}

export interface PaceWatch {
  /** @returns ends the watch; more calls change nothing */
  watch(body: PacedBody): () => void
  readonly watched: number
}

interface Seen {
  bytes: number
  lookedMs: number
  /** While its sender could send. */
  elapsedMs: number
  silentMs: number
}

/**
 * One timer for all bodies: most of them are whole before it is due.
 *
 * @example
 * ```ts
 * import { createServer } from 'node:http'
 * import { createPaceWatch, frontLimits } from 'onceonly/http/limits'
 *
 * const watch = createPaceWatch(frontLimits.paceEveryMs)
 * createServer((request) => {
 *   const unwatch = watch.watch({
 *     pace: { graceMs: 5_000, bytesPerSecond: 1_024, pauseMs: 10_000 },
 *     bytes: () => request.socket.bytesRead,
 *     isHeld: () => request.isPaused(),
 *     tooSlow: () => request.destroy(),
 *   })
 *   request.on('close', unwatch).resume()
 * })
 * ```
 */
export function createPaceWatch(everyMs: number, runtime: Runtime = createRuntime()): PaceWatch {
  const bodies = new Map<PacedBody, Seen>()
  let timer: Timer | null = null

  function look(): void {
    const nowMs = runtime.monotonicMs()
    for (const [body, seen] of bodies) {
      if (!isTooSlow(body, seen, nowMs)) continue
      bodies.delete(body)
      body.tooSlow()
    }
    timer = bodies.size === 0 ? null : runtime.setTimer(everyMs, look, true)
  }

  return {
    watch(body) {
      bodies.set(body, { bytes: body.bytes(), lookedMs: runtime.monotonicMs(), elapsedMs: 0, silentMs: 0 })
      timer ??= runtime.setTimer(everyMs, look, true)
      return () => void bodies.delete(body)
    },
    get watched() {
      return bodies.size
    },
  }
}

function isTooSlow(body: PacedBody, seen: Seen, nowMs: number): boolean {
  const passedMs = nowMs - seen.lookedMs
  seen.lookedMs = nowMs
  if (body.isHeld()) return false
  const { graceMs, bytesPerSecond, pauseMs } = body.pace
  const bytes = body.bytes()
  seen.elapsedMs += passedMs
  seen.silentMs = bytes > seen.bytes ? 0 : seen.silentMs + passedMs
  seen.bytes = bytes
  const countedMs = seen.elapsedMs - graceMs
  return seen.silentMs >= pauseMs || (countedMs > 0 && bytes < (countedMs / 1_000) * bytesPerSecond)
}
