import { BaseError, type ErrorOptions, type ErrorTable } from '../../ledger/core/base-error.ts'

/** The errors of the parts of streams. */
export const partErrors = {
  dedup_full: {
    retryable: true,
    applied: 'no',
    next: 'Retry the same call after `retryAfterMs`, or raise `mostKeys`.',
  },
} as const satisfies ErrorTable

export class PartError<C extends keyof typeof partErrors = keyof typeof partErrors> extends BaseError<C> {
  constructor(code: C, message: string, options?: ErrorOptions) {
    super(code, message, options, partErrors[code])
  }
}
