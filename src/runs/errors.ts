import { type ErrorOptions, type ErrorTable, OnceError } from '../ledger/core/errors.ts'

/** The errors of runs. */
export const runErrors = {
  run_conflict: {
    retryable: false,
    applied: 'no',
    next: 'Use a new `runId` for another input.',
  },
  run_diverged: {
    retryable: false,
    applied: 'no',
    next: 'Compare both sides in `details`; keep old runs on the old path with `run.version`, then `resume` this one.',
  },
  run_too_long: {
    retryable: false,
    applied: 'no',
    next: 'End this run and continue in another one.',
  },
  replay_timed_out: {
    retryable: false,
    applied: 'no',
    next: 'Let the body await nothing but its context, or allow more `timeoutMs`; nothing was performed.',
  },
  run_failed: {
    retryable: false,
    applied: 'maybe',
    next: 'Look at the failed step; after a fix `resume` the run, or start another one.',
  },
  run_timed_out: {
    retryable: false,
    applied: 'maybe',
    next: 'Look at the step it was at; `resume` it for the same time again, or give its definition more `timeoutMs`.',
  },
  run_cancelled: { retryable: false, applied: 'maybe', next: 'Start another run if it is still wanted.' },
  step_failed: {
    retryable: false,
    applied: 'maybe',
    next: 'Its attempts are in `details`; catch it to continue without the step, or `resume` the run after a fix.',
  },
  child_failed: {
    retryable: false,
    applied: 'maybe',
    next: 'Look at the child, by its `runId` in `details`; catch it to continue without the child, or `resume` this run after a fix, which resumes the child.',
  },
  step_overlaps: {
    retryable: false,
    applied: 'no',
    next: 'Await one step before the next, or run them as named branches with `run.all`.',
  },
} as const satisfies ErrorTable

export class RunError<C extends keyof typeof runErrors = keyof typeof runErrors> extends OnceError<C> {
  constructor(code: C, message: string, options?: ErrorOptions) {
    super(code, message, options, runErrors[code])
  }
}
