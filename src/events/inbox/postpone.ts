import { boundedRetryMs } from '../../ledger/core/retry.ts'

const mark = Symbol.for('onceonly.postponed')

/** What an effect throws to be asked again later, without a failure being counted: everything it wrote is undone. */
export interface Postponed extends Error {
  readonly delayMs: number | null
  readonly [mark]: true
}

class PostponedError extends Error implements Postponed {
  readonly delayMs: number | null
  readonly [mark] = true

  constructor(why: unknown, delayMs: number | null) {
    super(why instanceof Error ? why.message : String(why), { cause: why })
    this.name = 'Postponed'
    this.delayMs = delayMs
  }
}

/** Not now: the message is not at fault. The broker is asked to hand it over again after `delayMs`. */
export function postpone(why: unknown, options: { readonly delayMs?: number } = {}): Postponed {
  return new PostponedError(why, boundedRetryMs(options.delayMs))
}

export function isPostponed(thrown: unknown): thrown is Postponed {
  return typeof thrown === 'object' && thrown !== null && mark in thrown
}
