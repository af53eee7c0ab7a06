import { SECOND } from '../../core/limits.ts'

/** One short statement this often says whether anything was committed, while there are commits or callers that wait. */
export const LOOK_MS = 1 * SECOND
/**
 * How often a quiet server is looked at: what was not notified, a lost notification and a dead connection are noticed this
 * much later at most.
 */
export const DOZE_MS = 5 * SECOND
/** Looks in a row that found nothing, after which the server is quiet. */
const QUIET_LOOKS = 3

/** How long to wait before the next look at what was committed. */
export interface Looks {
  /** The answer of a look; true where it could not say. */
  looked(hasChanged: boolean): void
  /** Something happens now: more commits probably follow. Ends a doze. */
  rouse(): void
  /** Resolves when the next look is due, or the signal has fired. */
  due(signal: AbortSignal): Promise<void>
}

export function createLooks(isAwaited: () => boolean): Looks {
  let quiet = 0
  let doze: AbortController | null = null

  return {
    looked(hasChanged) {
      quiet = hasChanged ? 0 : quiet + 1
    },
    rouse() {
      quiet = 0
      doze?.abort()
    },
    async due(signal) {
      if (quiet < QUIET_LOOKS || isAwaited()) return await pause(LOOK_MS, signal)
      doze = new AbortController()
      await pause(DOZE_MS, AbortSignal.any([signal, doze.signal]))
      doze = null
    },
  }
}

export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal.addEventListener('abort', done)
    if (signal.aborted) done()
  })
}
