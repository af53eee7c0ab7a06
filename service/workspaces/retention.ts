import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../logs.ts'

/** Removes what is past its retention, a bounded number of rows or files at a time. Safe in many processes at once. */
export interface Sweep {
  readonly name: string
  /** `more`: the next step will probably remove something, too. */
  step(): Promise<{ readonly removed: number; readonly more: boolean }>
}

/** The part of its time that the sweep works at most: what is left serves callers. */
const SHARE = 0.25
const REST_LEAST_MS = 10

interface Parts {
  readonly sweeps: readonly Sweep[]
  /** The pause when nothing is left to remove, or a step failed. */
  readonly everyMs: number
  readonly log: Log
}

/** One loop for all of them, so that they never work at once. */
export function startRetention({ sweeps, everyMs, log }: Parts): { stop(): Promise<void> } {
  const stopping = new AbortController()
  const { signal } = stopping
  // Spread out, so that many processes on one store do not all come at once.
  const rest = (ms: number) => sleep(ms * (0.5 + Math.random()), null, { signal, ref: false }).catch(() => {})

  async function drain({ name, step }: Sweep): Promise<void> {
    let removed = 0
    for (let more = true; more && !signal.aborted; ) {
      const beganMs = performance.now()
      const done = await step()
      removed += done.removed
      more = done.more
      if (more) await rest(Math.max(REST_LEAST_MS, (performance.now() - beganMs) * (1 / SHARE - 1)))
    }
    if (removed > 0) log.info({ event: 'retention.swept', what: name, removed }, 'removed what is past its retention')
  }

  async function forever(): Promise<void> {
    while (!signal.aborted) {
      // First of all: a process that comes back finishes what it had begun before it removes what that may ask for.
      await rest(everyMs)
      for (const sweep of sweeps) {
        if (signal.aborted) return
        await drain(sweep).catch((err: unknown) =>
          log.warn({ event: 'retention.failed', what: sweep.name, err }, 'sweep failed, retrying'),
        )
      }
    }
  }

  const running = forever()
  return {
    async stop() {
      stopping.abort()
      await running
    },
  }
}
