import type { EntryState, RunRow, RunState } from './entry.ts'

/** Events of an engine, for logs, metrics and tests. */
export type RunEvent =
  | { readonly kind: 'started'; readonly runId: string; readonly definition: string }
  /** A run waits in a queue; `started` follows when the queue lets it in. */
  | { readonly kind: 'queued'; readonly runId: string; readonly definition: string; readonly queue: string }
  /** A worker put a run down: it ended, sleeps, or waits for an operator. */
  | { readonly kind: 'left'; readonly runId: string; readonly definition: string; readonly state: RunState }
  /**
   * A step changed its state, after that was recorded. `intent`: only a probe can determine whether it happened.
   * `replayed`: the body reached the step again and got the recorded result.
   */
  | {
      readonly kind: 'step'
      readonly runId: string
      readonly definition: string
      readonly step: string
      readonly state: StepState
    }
  /**
   * So many workers ended one after the other while they drove it: it is `unknown` until a person resumes or cancels
   * it.
   */
  | { readonly kind: 'parked'; readonly runId: string; readonly definition: string; readonly takeovers: number }
  /** Most of its journal's room is used: end it soon, or let it continue in another run. Once, when it becomes so. */
  | {
      readonly kind: 'journal_filling'
      readonly runId: string
      readonly definition: string
      /** Lines of the journal, of 50 000. */
      readonly lines: number
      /** Characters of plans and results, of 64 Mi. */
      readonly chars: number
    }
  /** Another worker has it, or an operator took it away; steps under way record nothing. */
  | { readonly kind: 'lost'; readonly runId: string }
  /** A run published a value, which is recorded. */
  | {
      readonly kind: 'emitted'
      readonly runId: string
      readonly definition: string
      readonly name: string
      readonly cursor: number
    }
  | { readonly kind: 'background_failed'; readonly runId: string | null; readonly error: unknown }
  /** The store answers again; so many renewals had failed, of which only the first was reported. */
  | { readonly kind: 'background_recovered'; readonly failures: number }

/** Of a run that is there now: it may have to wait for its queue. */
export function begun({ id: runId, definition, queue }: Pick<RunRow, 'id' | 'definition' | 'queue'>): RunEvent {
  return queue === null
    ? { kind: 'started', runId, definition }
    : { kind: 'queued', runId, definition, queue: queue.name }
}

export type StepState = Exclude<EntryState, 'waiting'> | 'replayed'
