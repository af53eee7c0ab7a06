import { type ErrorOptions, type ErrorTable, OnceError } from '../../../ledger/core/errors.ts'

/** The errors of readers of webhooks. */
export const webhookErrors = {
  unreadable_message: {
    retryable: false,
    applied: 'no',
    next: 'Correct the sender: the named part of the message is missing or malformed.',
  },
  bad_signature: {
    retryable: false,
    applied: 'no',
    next: 'Check the secret, and the clocks of both sides; nothing of the message was used.',
  },
} as const satisfies ErrorTable

export class WebhookError<C extends keyof typeof webhookErrors = keyof typeof webhookErrors> extends OnceError<C> {
  constructor(code: C, message: string, options?: ErrorOptions) {
    super(code, message, options, webhookErrors[code])
  }
}
