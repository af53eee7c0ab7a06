import type { Socket } from 'node:net'
import { LANE_BYTES_MAX } from './limits.ts'

/** What the lanes of all connections have in common at the moment. */
export interface Weather {
  paused: boolean
  delayMs: number
}

/** One direction of one connection. */
export interface Lane {
  /** Looks again whether something may move on, after the weather has changed. */
  flush(): void
  stop(): void
}

/**
 * Carries bytes from one socket to the other, each no earlier than its delay after its arrival, in order. `take` is
 * asked for every piece at the moment it would be passed on, and answers whether it is to be.
 */
export function createLane(from: Socket, to: Socket, weather: Weather, take: (bytes: Buffer) => boolean): Lane {
  /** No bytes: the sender has said all it had to say. */
  const queue: { readonly bytes: Buffer | undefined; readonly dueMs: number }[] = []
  let queuedBytes = 0
  let timer: NodeJS.Timeout | undefined

  function flush(): void {
    clearTimeout(timer)
    for (let next = queue[0]; next !== undefined && !weather.paused; next = queue[0]) {
      const waitMs = next.dueMs - performance.now()
      if (waitMs > 0) {
        timer = setTimeout(flush, waitMs)
        break
      }
      queue.shift()
      queuedBytes -= next.bytes?.length ?? 0
      if (to.destroyed) continue
      if (next.bytes === undefined) to.end()
      else if (take(next.bytes)) to.write(next.bytes)
    }
    if (queuedBytes + to.writableLength > LANE_BYTES_MAX) from.pause()
    else if (from.isPaused()) from.resume()
  }

  function enqueue(bytes: Buffer | undefined): void {
    queue.push({ bytes, dueMs: performance.now() + weather.delayMs })
    queuedBytes += bytes?.length ?? 0
    flush()
  }

  from.on('data', enqueue)
  from.on('end', () => enqueue(undefined))
  to.on('drain', flush)
  return { flush, stop: () => clearTimeout(timer) }
}
