import type { ServerResponse } from 'node:http'
import type { Standing } from '../core/standing.ts'
import { counters, histograms } from '../telemetry/instruments.ts'

/** Often enough to look alive, seldom enough to cost nothing. */
const TICK_MS = 2_000
/** Pages that are open at once; each costs a timer and a socket. */
const LISTENERS_MOST = 100

const rates = {
  claims: counters.claims,
  replays: counters.replays,
  inProgress: counters.inProgress,
  conflicts: counters.conflicts,
  guardBlocked: counters.guardBlocked,
}
const latencies = { request: histograms.request, claim: histograms.claim, effect: histograms.effect }

type Totals = Readonly<Record<string, number>>

/** Sends rates of this process and figures of the store to open pages, by server-sent events. */
export interface Live {
  readonly isFull: boolean
  listen(response: ServerResponse): void
  stop(): void
}

/** The part of `createPrometheusMeter` that rates are made of. */
export interface Totalling {
  total(name: string): number
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
    const since = (name: string) => (totals[name] ?? 0) - (before[name] ?? 0)
    const perSecond = Object.fromEntries(Object.keys(rates).map((name) => [name, since(name) / seconds]))
    const mean = (name: string) => {
      const count = since(`${name}_count`)
      return count === 0 ? null : (since(`${name}_sum`) / count) * 1_000
    }
    const latencyMs = Object.fromEntries(Object.keys(latencies).map((name) => [name, mean(name)]))
    before = totals
    at = now
    send({ at: Date.now(), perSecond, latencyMs, standing: await standing().catch(() => null) }, listeners)
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
        .then((stands) => send({ at: Date.now(), perSecond: zeroes, latencyMs: nothing, standing: stands }, [response]))
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

const zeroes = Object.fromEntries(Object.keys(rates).map((name) => [name, 0]))
const nothing = Object.fromEntries(Object.keys(latencies).map((name) => [name, null]))

/** A page that reads too slowly misses ticks, and stays connected. */
function send(data: unknown, listeners: Iterable<ServerResponse>): void {
  const text = `event: rates\ndata: ${JSON.stringify(data)}\n\n`
  for (const each of listeners) if (!each.writableNeedDrain && !each.destroyed) each.write(text)
}

function totalsOf(meter: Totalling): Totals {
  const totals: Record<string, number> = {}
  for (const [name, row] of Object.entries(rates)) totals[name] = meter.total(row.name)
  for (const [name, row] of Object.entries(latencies)) {
    totals[`${name}_sum`] = meter.total(`${row.name}_sum`)
    totals[`${name}_count`] = meter.total(`${row.name}_count`)
  }
  return totals
}
