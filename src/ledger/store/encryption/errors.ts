import { type ErrorOptions, type ErrorTable, OnceError } from '../../core/errors.ts'

/** The errors of encrypted stores; apart from the ledger's, which browsers load as well. */
export const encryptionErrors = {
  encryption_key: {
    retryable: false,
    applied: 'no',
    next: 'Give the keys that the store was encrypted with in `encryption.keys`; no command runs without them.',
  },
} as const satisfies ErrorTable

export class EncryptionError extends OnceError<keyof typeof encryptionErrors> {
  constructor(message: string, options?: ErrorOptions) {
    super('encryption_key', message, options, encryptionErrors.encryption_key)
  }
}
