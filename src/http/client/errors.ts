import { type ErrorOptions, type ErrorTable, OnceError } from '../../ledger/core/errors.ts'

/** The errors of the HTTP client. */
export const clientErrors = {
  no_answer: {
    retryable: true,
    applied: 'maybe',
    next: 'Retry under the same key, see `details`; it may have had its effect.',
  },
} as const satisfies ErrorTable

export class ClientError<C extends keyof typeof clientErrors = keyof typeof clientErrors> extends OnceError<C> {
  constructor(code: C, message: string, options?: ErrorOptions) {
    super(code, message, options, clientErrors[code])
  }
}
