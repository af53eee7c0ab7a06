import type { AppliedWord } from '../../core/errors.ts'
import { isOnceError, OnceError } from '../../core/errors.ts'

/** Refused before the script began, so that nothing of it happened: the words that begin such an answer. */
const NOT_BEGUN =
  /^(NOSCRIPT|LOADING|READONLY|OOM|BUSY|MASTERDOWN|NOAUTH|WRONGPASS|NOPERM|CLUSTERDOWN|MISCONF|NOREPLICAS|MOVED|ASK|TRYAGAIN|CROSSSLOT)\b/

export function isScriptMissing(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT')
}

/** Another server has its place now, to which a new connection may lead; this one would refuse forever. */
export function isDemoted(error: unknown): boolean {
  return error instanceof Error && /\b(READONLY|MASTERDOWN)\b/.test(error.message)
}

/** `whenLost` says what a lost answer means: `maybe` for a write that was under way, `no` for a read. */
export function storeError(error: unknown, whenLost: AppliedWord): OnceError {
  if (isOnceError(error)) return error
  const message = error instanceof Error ? error.message : String(error)
  if (/\bWRONGTYPE\b/.test(message)) return layoutError()
  const applied = NOT_BEGUN.test(message) ? 'no' : whenLost
  return new OnceError('store_unavailable', `Redis failed: ${message}.`, { cause: error, applied })
}

/** Every bucket is looked at before anything is written, so that nothing happened to the keys that are there. */
export function layoutError(): OnceError {
  const what = 'This Redis holds keys of another version of the store under the same `prefix`.'
  return new OnceError('schema_too_new', `${what} Choose another \`prefix\`, or remove the old keys.`, {
    applied: 'no',
  })
}

export function timeoutError(timeoutMs: number, applied: AppliedWord): OnceError {
  return new OnceError('store_unavailable', `Redis did not answer within ${Math.round(timeoutMs)} ms.`, { applied })
}

/** Nothing was sent, so nothing can have happened. */
export function awayError(cause?: unknown): OnceError {
  return new OnceError('store_unavailable', 'Redis cannot be reached.', { cause, applied: 'no' })
}

export function stoppedError(): OnceError {
  return new OnceError('stopped', 'The Redis store was stopped.')
}

export function rowRefused(why: string): OnceError {
  return new OnceError('row_refused', `Redis cannot keep a value as it is: ${why}.`, { applied: 'no' })
}
