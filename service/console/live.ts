import type { FastifyInstance, FastifyReply } from 'fastify'
import type { Standing } from 'onceonly/operate'
import type { PrometheusMeter } from 'onceonly/telemetry'
import { counters, histograms } from 'onceonly/telemetry'

/** Often enough to look alive, seldom enough to cost nothing. */
const TICK_MS = 2_000
/** Pages that are open at once; each costs a timer and a socket. */
const LISTENERS_MOST = 100

const rates = {
  attempts: counters.attempts,
  claims: counters.claims,
  replays: counters.replays,
  joined: counters.joined,
  inProgress: counters.inProgress,
  conflicts: counters.conflicts,
  expired: counters.expired,
  unknown: counters.unknown,
  requests: counters.requests,
  guardBlocked: counters.guardBlocked,
  guardPending: counters.guardPending,
  published: counters.published,
  handled: counters.inbox,
  sagaEvents: counters.sagaEvents,
  runsStarted: counters.runsStarted,
}
const latencies = { request: histograms.request, claim: histograms.claim, effect: histograms.effect }

type Totals = Readonly<Record<string, number>>

/** Tells open pages how fast things go, by server-sent events: the rates of this process, and how the store stands. */
export interface Live {
  listen(reply: FastifyReply): boolean
  stop(): void
}

export function createLive(server: FastifyInstance, meter: PrometheusMeter, standing: () => Promise<Standing>): Live {
  const listeners = new Set<FastifyReply>()
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
    listen(reply) {
      if (listeners.size >= LISTENERS_MOST) return false
      reply.hijack()
      const { raw } = reply
      raw.writeHead(200, {
        'content-type': 'text/event-stream; charset=utf-8',
        'cache-control': 'no-store',
        'x-accel-buffering': 'no',
      })
      raw.write('retry: 2000\n\n')
      listeners.add(reply)
      raw.once('close', () => {
        listeners.delete(reply)
        if (listeners.size > 0 || timer === null) return
        clearInterval(timer)
        timer = null
      })
      void standing()
        .catch(() => null)
        .then((stands) => send({ at: Date.now(), perSecond: zeroes, latencyMs: nothing, standing: stands }, [reply]))
      if (timer === null) {
        before = totalsOf(meter)
        at = performance.now()
        timer = setInterval(() => {
          tick().catch((error: unknown) => server.log.warn({ event: 'console.live_failed', err: error }))
        }, TICK_MS)
      }
      return true
    },
    stop() {
      if (timer !== null) clearInterval(timer)
      timer = null
      for (const { raw } of listeners) raw.end()
      listeners.clear()
    },
  }
}

const zeroes = Object.fromEntries(Object.keys(rates).map((name) => [name, 0]))
const nothing = Object.fromEntries(Object.keys(latencies).map((name) => [name, null]))

/** A page that reads more slowly than we write is behind, not lost: it misses ticks. */
function send(data: unknown, listeners: Iterable<FastifyReply>): void {
  const text = `event: rates\ndata: ${JSON.stringify(data)}\n\n`
  for (const { raw } of listeners) if (!raw.writableNeedDrain && !raw.destroyed) raw.write(text)
}

function totalsOf(meter: PrometheusMeter): Totals {
  const totals: Record<string, number> = {}
  for (const [name, row] of Object.entries(rates)) totals[name] = meter.total(row.name)
  for (const [name, row] of Object.entries(latencies)) {
    totals[`${name}_sum`] = meter.total(`${row.name}_sum`)
    totals[`${name}_count`] = meter.total(`${row.name}_count`)
  }
  return totals
}
