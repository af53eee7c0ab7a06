import { type ErrorOptions, type ErrorTable, OnceError } from '../../ledger/core/errors.ts'

/** The errors of the outbox. */
export const outboxErrors = {
  bad_message: {
    retryable: false,
    applied: 'no',
    next: 'Give a topic, key, headers and a JSON body within the limits of the outbox.',
  },
} as const satisfies ErrorTable

export class OutboxError<C extends keyof typeof outboxErrors = keyof typeof outboxErrors> extends OnceError<C> {
  constructor(code: C, message: string, options?: ErrorOptions) {
    super(code, message, options, outboxErrors[code])
  }
}
