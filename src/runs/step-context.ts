/** What a step is given while it acts. */
export interface StepContext {
  /** The same in every attempt, restart and replay: pass it to systems that deduplicate by key. */
  readonly key: string
  /** From 1. */
  readonly attempt: number
  /**
   * Fires when the result will not be recorded any more: time is up, the run was cancelled or another worker has it.
   */
  readonly signal: AbortSignal
  /** A key of its own for one part of the step. */
  derive(name: string): string
}

/** What a provider, or the step itself, says when it is asked whether something happened. */
export type Verified<T> =
  | { readonly kind: 'done'; readonly result: T }
  | { readonly kind: 'not_done' }
  | { readonly kind: 'unknown' }
