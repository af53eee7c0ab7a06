/** `onceonly/errors`: every error of the package, with what to do about it. Runs in browsers. */

import { brokerErrors } from './events/brokers/errors.ts'
import { webhookErrors } from './events/inbox/identities/errors.ts'
import { outboxErrors } from './events/outbox/errors.ts'
import { sagaErrors } from './events/saga/errors.ts'
import { clientErrors } from './http/client/errors.ts'
import { isOnceError as hasCode, ledgerErrors, type OnceError } from './ledger/core/errors.ts'
import { encryptionErrors } from './ledger/store/encryption/errors.ts'
import { runErrors } from './runs/errors.ts'
import { streamErrors } from './streams/client/errors.ts'
import { exchangeErrors } from './streams/exchange/errors.ts'
import { partErrors } from './streams/parts/errors.ts'

export type { AppliedWord as Applied, ErrorOptions, ErrorRow } from './ledger/core/errors.ts'
export { OnceError } from './ledger/core/errors.ts'

/** The rows of every part of the package: whether a retry may succeed, whether the change was applied, what to do next. */
export const errorTables = {
  ledger: ledgerErrors,
  encryption: encryptionErrors,
  client: clientErrors,
  outbox: outboxErrors,
  webhooks: webhookErrors,
  brokers: brokerErrors,
  saga: sagaErrors,
  run: runErrors,
  'stream/parts': partErrors,
  stream: streamErrors,
  'stream/server': exchangeErrors,
} as const

type Tables = typeof errorTables
type CodesOf<Table> = Table extends unknown ? keyof Table : never

/** Every code that a `OnceError` can have. */
export type ErrorCode = CodesOf<Tables[keyof Tables]>

/**
 * Whether it is an error of this package, and of this code where one is given.
 *
 * @example
 * ```ts
 * import { isOnceError } from 'onceonly/errors'
 *
 * export function statusOf(error: unknown): number {
 *   if (isOnceError(error, 'key_reused')) return 409
 *   return isOnceError(error) && error.retryable ? 503 : 500
 * }
 * ```
 */
export const isOnceError: <C extends ErrorCode = ErrorCode>(error: unknown, code?: C) => error is OnceError<C> = hasCode
