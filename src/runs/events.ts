import type { EntryState, RunState } from './entry.ts'

/** What an engine tells whoever listens: for logs, metrics and tests. */
export type RunEvent =
  | { readonly kind: 'started'; readonly runId: string; readonly definition: string }
  /** A worker put a run down: it ended, sleeps, or waits for a person. */
  | { readonly kind: 'left'; readonly runId: string; readonly state: RunState }
  /**
   * A step came to something, once it is recorded: `intent` when only a look can tell whether it happened. `replayed`: the
   * body came to it again, and was handed what is recorded.
   */
  | {
      readonly kind: 'step'
      readonly runId: string
      readonly definition: string
      readonly step: string
      readonly state: StepState
    }
  /** So many workers ended one after the other while they drove it: it is `unknown` until a person resumes or cancels it. */
  | { readonly kind: 'parked'; readonly runId: string; readonly definition: string; readonly takeovers: number }
  /** Another worker has it, or a person took it away; whatever was under way records nothing. */
  | { readonly kind: 'lost'; readonly runId: string }
  | { readonly kind: 'background_failed'; readonly runId: string | null; readonly error: unknown }

export type StepState = Exclude<EntryState, 'waiting'> | 'replayed'
