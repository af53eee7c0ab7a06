import { SECOND } from '../../ledger/core/limits.ts'

/**
 * Distinguishes a slow home region from a silent link, while requests wait for it: probes the home on a connection of its
 * own. Any answer proves life, and so does any refusal: a server that is ending refuses new connections, and still answers
 * what it has begun.
 */
export interface Pulse {
  /** Calls `silent` when the link is; returns what ends the watch. */
  watch(silent: () => void): () => void
  stop(): void
}

export interface PulseTimes {
  /** A request that is answered sooner needs no sign of life. */
  readonly everyMs: number
  /** A sign of life takes one round trip, or a few for its connection; slower is as good as none. */
  readonly signMs: number
}

const TIMES: PulseTimes = { everyMs: 1 * SECOND, signMs: 2 * SECOND }
/** One may be lost in a short disturbance. */
const MISSES_TO_SILENCE = 2

/** @param sign asks for a sign of life, until its signal is aborted; it resolves when there was one */
export function createPulse(sign: (signal: AbortSignal) => Promise<void>, times: PulseTimes = TIMES): Pulse {
  const waiting = new Set<() => void>()
  let timer: NodeJS.Timeout | null = null
  let asking: AbortController | null = null
  let misses = 0

  function next(): void {
    timer = waiting.size === 0 ? null : setTimeout(() => void look(), misses === 0 ? times.everyMs : 0)
  }

  async function look(): Promise<void> {
    const late = new AbortController()
    asking = late
    const giveUp = setTimeout(() => late.abort(), times.signMs)
    // Only silence counts: a server that refuses is alive.
    await sign(late.signal).catch(() => undefined)
    clearTimeout(giveUp)
    asking = null
    misses = late.signal.aborted ? misses + 1 : 0
    if (misses >= MISSES_TO_SILENCE) for (const silent of waiting) silent()
    next()
  }

  return {
    watch(silent) {
      waiting.add(silent)
      if (timer === null) next()
      return () => void waiting.delete(silent)
    },
    stop() {
      waiting.clear()
      if (timer !== null) clearTimeout(timer)
      timer = null
      asking?.abort()
    },
  }
}
