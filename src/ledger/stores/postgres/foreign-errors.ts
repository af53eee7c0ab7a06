import { isOnceError, OnceError } from '../../core/errors.ts'
import { messageOf } from '../../store/sql/errors.ts'
import { SECOND_CLIENT } from './errors.ts'

/** What is wrong with a transaction of an ORM, and what to do. */

/** The ORM got no connection in time, or no answer. */
export function notBegun(orm: string, reason: unknown): OnceError {
  if (isOnceError(reason)) return reason
  const text = `${orm} could not begin a transaction: ${messageOf(reason)}.`
  return new OnceError('store_unavailable', text, { cause: reason, applied: 'no', next: SECOND_CLIENT })
}

export function readOnly(orm: string, cause: unknown): OnceError {
  const text = `This transaction of ${orm} is read-only, and a claim is a write. Open it for writing.`
  return new OnceError('bad_option', text, { cause })
}

/** Tried again it would not find them either. */
export function noTables(orm: string, cause: unknown): OnceError {
  const text = `This transaction of ${orm} does not find the tables of the ledger. Connect it to the database of the store; where it sets another \`search_path\`, give postgresStore a \`schema\`.`
  return new OnceError('bad_option', text, { cause })
}

/** The transaction that is open may hold the connection that would make them. */
export function tablesToCome(cause: unknown): OnceError {
  const next = 'Use the ledger once before your first transaction, or run `onceonly migrate`.'
  return new OnceError('store_unavailable', 'The tables of the ledger are not made yet.', {
    cause,
    applied: 'no',
    next,
  })
}
