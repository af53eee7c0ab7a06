import { closeCodes } from 'onceonly/stream/protocol'
import type { Session, SocketLink } from 'onceonly/stream/server'
import type { ClientWeather } from './network.ts'

/** A connection through the weather of its client: what passes is late by its delay, in order, or does not pass at all. */
export interface SlowLink {
  /** To be given to the region. */
  readonly link: SocketLink
  /** To be given to the server of sockets, in front of the region's session. */
  through(session: Session): Session
  /** The weather has changed. */
  changed(): void
}

interface Late {
  readonly dueMs: number
  pass(): void
}

/** What a client may have on its way to a region, and as much again: on a real line it would be held back. */
const LATE_BYTES_MOST = 512 * 1024

export function createSlowLink(real: SocketLink, weather: () => ClientWeather): SlowLink {
  let lateBytes = 0
  /** The other way: from the client. */
  let upBytes = 0
  let session: Session | null = null
  const [up, down] = [createLane(), createLane()]

  function offline(): boolean {
    const { offlineUntilMs } = weather()
    return offlineUntilMs !== null && offlineUntilMs > performance.now()
  }

  /** As if the cable had been pulled: no close frame. */
  function changed(): void {
    if (offline()) real.cut()
  }

  return {
    changed,
    link: {
      ...(real.format === undefined ? {} : { format: real.format }),
      get bufferedBytes() {
        return real.bufferedBytes + lateBytes
      },
      send(data) {
        const { delayMs } = weather()
        if (delayMs === 0 && down.empty) return real.send(data)
        lateBytes += data.length
        down.add(delayMs, () => {
          lateBytes -= data.length
          real.send(data)
          if (lateBytes === 0) session?.drained()
        })
      },
      close(code, reason) {
        if (down.empty) real.close(code, reason)
        else down.add(weather().delayMs, () => real.close(code, reason))
      },
      cut: () => real.cut(),
    },
    through(inner) {
      session = inner
      return {
        received(data) {
          if (offline()) return real.cut()
          const { delayMs } = weather()
          if (delayMs === 0 && up.empty) inner.received(data)
          else if (upBytes + data.length > LATE_BYTES_MOST)
            real.close(closeCodes.flooded, 'more is on its way than fits')
          else {
            upBytes += data.length
            up.add(delayMs, () => {
              upBytes -= data.length
              inner.received(data)
            })
          }
        },
        drained: () => inner.drained(),
        closed() {
          up.stop()
          down.stop()
          inner.closed()
        },
      }
    },
  }
}

/** One direction: in order, each no earlier than its delay after it came. */
function createLane() {
  const queue: Late[] = []
  let timer: NodeJS.Timeout | undefined

  function flush(): void {
    clearTimeout(timer)
    for (let next = queue[0]; next !== undefined; next = queue[0]) {
      const waitMs = next.dueMs - performance.now()
      if (waitMs > 0) {
        timer = setTimeout(flush, waitMs)
        return
      }
      queue.shift()
      next.pass()
    }
  }

  return {
    get empty() {
      return queue.length === 0
    },
    add(delayMs: number, pass: () => void) {
      queue.push({ dueMs: performance.now() + delayMs, pass })
      if (queue.length === 1) flush()
    },
    stop() {
      clearTimeout(timer)
      queue.length = 0
    },
  }
}
