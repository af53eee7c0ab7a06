import { BaseError, type ErrorOptions, type ErrorTable } from '../../ledger/core/base-error.ts'

/** The errors of clients of streams. */
export const streamErrors = {
  storage_taken: {
    retryable: false,
    applied: 'no',
    next: 'Give every client storage of its own.',
  },
  target_unknown: {
    retryable: false,
    applied: 'no',
    next: 'Reply to a message that was received in this room.',
  },
} as const satisfies ErrorTable

export class StreamError<C extends keyof typeof streamErrors = keyof typeof streamErrors> extends BaseError<C> {
  constructor(code: C, message: string, options?: ErrorOptions) {
    super(code, message, options, streamErrors[code])
  }
}
