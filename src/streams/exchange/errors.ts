import { type ErrorOptions, type ErrorTable, OnceError } from '../../ledger/core/errors.ts'

/** The errors of the exchange between regions. */
export const exchangeErrors = {
  broker_unavailable: {
    retryable: true,
    applied: 'no',
    next: 'Check that the region runs and that NATS can be reached; it is asked again.',
  },
  unreadable_message: {
    retryable: false,
    applied: 'no',
    next: 'Run versions of onceonly that can read each other in all regions.',
  },
} as const satisfies ErrorTable

export class ExchangeError<C extends keyof typeof exchangeErrors = keyof typeof exchangeErrors> extends OnceError<C> {
  constructor(code: C, message: string, options?: ErrorOptions) {
    super(code, message, options, exchangeErrors[code])
  }
}
