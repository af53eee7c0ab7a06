import type { Runtime } from '../../runtime/runtime.ts'

/** A round of background work that can also be asked for at once; rounds never overlap. */
export interface Pulse {
  /** A round that begins after this call. */
  round(): Promise<void>
  /** The same, without waiting for it. */
  soon(): void
  /** No further round begins. */
  stop(): Promise<void>
}

export function createPulse(runtime: Runtime, work: () => Promise<void>, failed: (error: unknown) => void): Pulse {
  let running: Promise<void> | null = null
  let wanted = false
  let stopped = false

  async function rounds(): Promise<void> {
    while (wanted && !stopped) {
      wanted = false
      await work()
    }
  }

  function round(): Promise<void> {
    wanted = true
    running ??= rounds().finally(() => {
      running = null
    })
    return running
  }

  return {
    round,
    soon() {
      if (stopped) return
      runtime.soon(() => {
        if (!stopped) round().catch(failed)
      })
    },
    async stop() {
      stopped = true
      await running?.catch(() => undefined)
    },
  }
}
