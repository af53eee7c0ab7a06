import { OnceError } from '../../core/errors.ts'
import type { Call } from '../../store/port.ts'
import type { Connection } from './connection.ts'
import type { Engine } from './engine.ts'

/** Rows that one step of a scan looks at: about two milliseconds, after which the other requests have their turn. */
export const STEP_ROWS = 2_000

/** Repeats a short step on the reader until it answers something else than null. */
export async function inSteps<T>(engine: Engine, call: Call, step: (reader: Connection) => T | null): Promise<T> {
  const startedMs = performance.now()
  for (;;) {
    const result = await engine.read(call, step)
    if (result !== null) return result
    if (performance.now() - startedMs > call.timeoutMs) throw tooLong(call)
    await new Promise((resolve) => void setImmediate(resolve))
  }
}

function tooLong({ timeoutMs }: Call): OnceError {
  const message = `Looking through the records took longer than ${timeoutMs} ms.`
  return new OnceError('store_unavailable', message, { applied: 'no' })
}
