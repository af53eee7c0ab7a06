import type { ServerResponse } from 'node:http'
import { latencyOf } from '../core/history-points.ts'
import type { Standing } from '../core/standing.ts'
import { since, type Totalling, totalsOf } from './totals.ts'

/** Often enough to look alive, seldom enough to cost nothing. */
const TICK_MS = 2_000
/** Pages that are open at once; each costs a timer and a socket. */
const LISTENERS_MOST = 100

/** Sends rates of this process and figures of the store to open pages, by server-sent events. */
export interface Live {
  readonly isFull: boolean
  listen(response: ServerResponse): void
  stop(): void
}

export interface LiveOptions {
  readonly meter: Totalling
  standing(): Promise<Standing>
  onError(error: unknown): void
}

export function createLive({ meter, standing, onError }: LiveOptions): Live {
  const listeners = new Set<ServerResponse>()
  let timer: NodeJS.Timeout | null = null
  let before = totalsOf(meter)
  let at = performance.now()

  async function tick(): Promise<void> {
    const totals = totalsOf(meter)
    const now = performance.now()
    const seconds = Math.max(0.001, (now - at) / 1_000)
    const { counts, latencies } = since(before, totals)
    before = totals
    at = now
    send(
      {
        at: Date.now(),
        perSecond: mapped(counts, (count) => count / seconds),
        latencyMs: mapped(latencies, (latency) => latencyOf([latency])),
        standing: await standing().catch(() => null),
      },
      listeners,
    )
  }

  return {
    get isFull() {
      return listeners.size >= LISTENERS_MOST
    },
    listen(response) {
      response.writeHead(200, {
        'content-type': 'text/event-stream; charset=utf-8',
        'cache-control': 'no-store',
        'x-accel-buffering': 'no',
      })
      response.write('retry: 2000\n\n')
      listeners.add(response)
      response.once('close', () => {
        listeners.delete(response)
        if (listeners.size > 0 || timer === null) return
        clearInterval(timer)
        timer = null
      })
      void standing()
        .catch(() => null)
        .then((stands) => send({ at: Date.now(), ...nothing, standing: stands }, [response]))
      if (timer === null) {
        before = totalsOf(meter)
        at = performance.now()
        timer = setInterval(() => void tick().catch(onError), TICK_MS)
      }
    },
    stop() {
      if (timer !== null) clearInterval(timer)
      timer = null
      for (const response of listeners) response.end()
      listeners.clear()
    },
  }
}

/** Of a page that has just been opened. */
const nothing = { perSecond: {}, latencyMs: {} } as const

function mapped<T, R>(of: Readonly<Record<string, T>>, make: (value: T) => R): Readonly<Record<string, R>> {
  return Object.fromEntries(Object.entries(of).map(([name, value]) => [name, make(value)]))
}

/** A page that reads too slowly misses ticks, and stays connected. */
function send(data: unknown, listeners: Iterable<ServerResponse>): void {
  const text = `event: rates\ndata: ${JSON.stringify(data)}\n\n`
  for (const each of listeners) if (!each.writableNeedDrain && !each.destroyed) each.write(text)
}
