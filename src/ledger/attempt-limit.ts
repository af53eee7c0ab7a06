import type { Runtime } from '../runtime/runtime.ts'
import { OnceError } from './core/errors.ts'
import type { RecordId } from './core/identity.ts'
import { limits } from './core/limits.ts'
import type { Command, Declared } from './declared.ts'

/** Answers a caller that spams one key, before anything is read, the cache of replays included. Off unless the operation asks for it. */
export interface AttemptLimit {
  check(op: Declared, command: Command): OnceError<'too_many_attempts'> | null
}

interface Window {
  readonly endsAt: number
  attempts: number
}

export function createAttemptLimit(runtime: Runtime): AttemptLimit {
  /** Oldest first, bounded: a key that fell out simply starts a new window. */
  const windows = new Map<RecordId, Window>()
  return {
    check(op, command) {
      const rule = op.definition.perKeyLimit
      if (rule === undefined) return null
      const now = runtime.monotonicMs()
      let window = windows.get(command.id)
      if (window === undefined || window.endsAt <= now) {
        windows.delete(command.id)
        window = { endsAt: now + rule.perMs, attempts: 0 }
        windows.set(command.id, window)
        for (const oldest of windows.keys()) {
          if (windows.size <= limits.attemptLimitKeys) break
          windows.delete(oldest)
        }
      }
      window.attempts++
      if (window.attempts <= rule.attempts) return null
      const text = `More than ${rule.attempts} attempts under one key within ${rule.perMs} ms.`
      return new OnceError('too_many_attempts', text, { retryAfterMs: Math.ceil(window.endsAt - now) })
    },
  }
}
