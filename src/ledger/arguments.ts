import type { ClaimOptions } from './claim.ts'
import { OnceError } from './core/errors.ts'
import type { CallOptions } from './execute.ts'

/** What is wrong with the arguments of a call, found before anything is claimed; null when nothing is. */
export function wrongCall(method: string, effect: unknown, options: CallOptions): OnceError<'bad_option'> | null {
  if (typeof effect !== 'function') return wrong(method, `needs an effect: a function, not ${nameOf(effect)}`)
  const { signal, decideMs } = options
  if (signal !== undefined && typeof signal.throwIfAborted !== 'function')
    return wrong(method, 'takes an AbortSignal as `signal`')
  return isDuration(decideMs) ? null : wrong(method, 'takes a number of milliseconds from 0 as `decideMs`')
}

export function wrongClaim({ waitMs }: ClaimOptions): OnceError<'bad_option'> | null {
  return isDuration(waitMs) ? null : wrong('claim', 'takes a number of milliseconds from 0 as `waitMs`')
}

function isDuration(ms: number | undefined): boolean {
  return ms === undefined || (typeof ms === 'number' && ms >= 0)
}

function nameOf(value: unknown): string {
  return value === null ? 'null' : typeof value
}

function wrong(method: string, what: string): OnceError<'bad_option'> {
  return new OnceError('bad_option', `\`${method}\` ${what}. Nothing was claimed.`)
}
