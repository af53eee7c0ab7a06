import { setTimeout as sleep } from 'node:timers/promises'
import { SECOND } from 'onceonly'
import type { Base } from './store.ts'

/** Spread out, so that many processes on one store do not all come at once. Ends early when the signal fires. */
export async function rest(signal: AbortSignal, ms: number): Promise<void> {
  await sleep(ms * (0.5 + Math.random()), null, { signal, ref: false }).catch(() => {})
}

/** How often background work that waits for a change of the store looks all the same: a hint may be lost. */
const SAFETY_MS = 30 * SECOND

/**
 * Background work like `startRounds`. A round that found nothing to do answers `idle`: the next one comes when the store
 * has changed.
 */
export function startIdleRounds(
  { sql }: Base,
  topic: string,
  everyMs: number,
  work: () => Promise<'idle' | 'busy'>,
): { stop(): Promise<void> } {
  let changed = new AbortController()
  const watch = sql.listen(topic, () => changed.abort())
  const rounds = startRounds(everyMs, async (signal) => {
    // Before the round: what changes during it may have come too late for it.
    changed = new AbortController()
    if ((await work()) === 'idle') await rest(AbortSignal.any([signal, changed.signal]), SAFETY_MS)
  })
  return {
    stop() {
      watch.stop()
      return rounds.stop()
    },
  }
}

/** Background work, again and again after a pause, until it is stopped. The work catches its own errors. */
export function startRounds(
  everyMs: number,
  work: (signal: AbortSignal) => Promise<unknown>,
): { stop(): Promise<void> } {
  const stopping = new AbortController()
  const { signal } = stopping
  const running = (async () => {
    while (!signal.aborted) {
      await rest(signal, everyMs)
      if (!signal.aborted) await work(signal)
    }
  })()
  return {
    async stop() {
      stopping.abort()
      await running
    },
  }
}
