import { setTimeout as sleep } from 'node:timers/promises'

/** Spread out, so that many processes on one store do not all come at once. Ends early when the signal fires. */
export async function rest(signal: AbortSignal, ms: number): Promise<void> {
  await sleep(ms * (0.5 + Math.random()), null, { signal, ref: false }).catch(() => {})
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
