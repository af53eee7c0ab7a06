import { type ErrorOptions, type ErrorTable, OnceError } from '../../ledger/core/errors.ts'

/** The errors of message brokers. */
export const brokerErrors = {
  broker_unavailable: {
    retryable: true,
    applied: 'no',
    next: 'Check that the broker runs, can be reached, and allows what the message names.',
  },
} as const satisfies ErrorTable

export class BrokerError<C extends keyof typeof brokerErrors = keyof typeof brokerErrors> extends OnceError<C> {
  constructor(code: C, message: string, options?: ErrorOptions) {
    super(code, message, options, brokerErrors[code])
  }
}
