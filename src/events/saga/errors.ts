import { type ErrorOptions, type ErrorTable, OnceError } from '../../ledger/core/errors.ts'

/** The errors of sagas. */
export const sagaErrors = {
  saga_not_accepted: {
    retryable: true,
    applied: 'no',
    next: 'Handle, ignore or defer the event in this state, if it is legitimate.',
  },
  saga_conflict: {
    retryable: true,
    applied: 'no',
    next: 'Deliver the message again: other events changed the same instance at the same time.',
  },
  saga_misused: {
    retryable: false,
    applied: 'no',
    next: 'Correct the handler or its definition; nothing was saved or sent.',
  },
} as const satisfies ErrorTable

export class SagaError<C extends keyof typeof sagaErrors = keyof typeof sagaErrors> extends OnceError<C> {
  constructor(code: C, message: string, options?: ErrorOptions) {
    super(code, message, options, sagaErrors[code])
  }
}
