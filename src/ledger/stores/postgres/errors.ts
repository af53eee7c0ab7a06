import type { AppliedWord } from '../../core/errors.ts'
import { isOnceError, OnceError } from '../../core/errors.ts'

interface SqlError {
  readonly code: string
  readonly message: string
}

/** By shape: system errors such as `EPIPE` have a code too, but only the server's own errors have a severity. */
export function sqlErrorOf(error: unknown): SqlError | null {
  if (!(error instanceof Error) || !('code' in error) || !('severity' in error)) return null
  return typeof error.code === 'string' ? { code: error.code, message: error.message } : null
}

/** Serialisation failure, deadlock, lock time-out: the server undid the statement, and it may be repeated as it is. */
const BUSY = /^(40001|40P01|55P03)$/
/**
 * The queue of notifications is full, because some session listens and never reads. The code equals that of a row that is
 * too large for an index; only the server's source file distinguishes them, and it is not translated.
 */
const LIMIT_EXCEEDED = '54000'
const NOTIFY_SOURCE = 'async.c'
/** The server ended the session. By code, never by severity, which is translated. */
const SESSION_OVER = /^(08|57P|25P03)/
/** Also the errors that may end a session, or come from within a commit: the statement may have taken effect. */
const IN_DOUBT = /^(08|57P|25P03|58|XX)/
/**
 * The value, not the statement, was refused: a NUL character, a number out of range, an index row that is too large.
 */
const DATA = /^(22|23|54)/
/** Tables are gone: they were dropped or restored under a running process. */
const SCHEMA_GONE = /^(42P01|42703|3F000)$/
const ABORTED = '25P02'

export function isBusy(error: unknown): boolean {
  const code = sqlErrorOf(error)?.code ?? ''
  return BUSY.test(code) || (code === LIMIT_EXCEEDED && (error as { file?: unknown }).file === NOTIFY_SOURCE)
}

export function isSessionOver(error: unknown): boolean {
  return SESSION_OVER.test(sqlErrorOf(error)?.code ?? '')
}

/** Nothing came back from the server, or it said that the session is over. */
export function isConnectionLost(error: unknown): boolean {
  return (sqlErrorOf(error) === null && !isOnceError(error)) || isSessionOver(error)
}

/** The statement needs a privilege that the user does not have. */
export function isForbidden(error: unknown): boolean {
  return sqlErrorOf(error)?.code === '42501'
}

/** The transaction can continue only from a savepoint: a statement in it has failed. */
export function isAborted(error: unknown): boolean {
  return sqlErrorOf(error)?.code === ABORTED
}

export function isSchemaGone(error: unknown): boolean {
  return SCHEMA_GONE.test(sqlErrorOf(error)?.code ?? '')
}

/** True when the connection is still good for the next statement. */
export function leavesConnectionUsable(error: unknown): boolean {
  return isBusy(error) || DATA.test(sqlErrorOf(error)?.code ?? '')
}

/** `whenLost` says what a lost answer means: `maybe` for a write that was under way, `no` before it or for a read. */
export function storeError(error: unknown, whenLost: AppliedWord): OnceError {
  if (isOnceError(error)) return error
  const sql = sqlErrorOf(error)
  if (sql === null || IN_DOUBT.test(sql.code)) {
    return new OnceError('store_unavailable', `The connection to PostgreSQL was lost (${messageOf(error)}).`, {
      cause: error,
      applied: whenLost,
    })
  }
  const reason = `${sql.message} (SQLSTATE ${sql.code})`
  if (isBusy(error)) {
    return new OnceError('store_busy', `PostgreSQL undid the statement: ${reason}.`, { cause: error, applied: 'no' })
  }
  if (DATA.test(sql.code)) {
    return new OnceError('row_refused', `PostgreSQL refused a value: ${reason}.`, { cause: error, applied: 'no' })
  }
  if (sql.code === ABORTED) return abortedError(error)
  // Whatever else the server refuses (read-only after a failover, a missing privilege, a full disk) it did not do.
  return new OnceError('store_unavailable', `PostgreSQL refused the statement: ${reason}.`, {
    cause: error,
    applied: 'no',
  })
}

/** No statement was sent, so nothing can have happened. */
export function connectError(error: unknown): OnceError {
  if (isOnceError(error)) return error
  return new OnceError('store_unavailable', `PostgreSQL cannot be reached: ${messageOf(error)}.`, {
    cause: error,
    applied: 'no',
  })
}

export function timeoutError(timeoutMs: number, applied: AppliedWord): OnceError {
  return new OnceError('store_unavailable', `PostgreSQL did not answer within ${timeoutMs} ms.`, { applied })
}

/** Nothing was committed, whatever the effect believes. */
export function abortedError(cause?: unknown): OnceError {
  const message = 'A statement of this transaction failed, and the effect continued as if it had not.'
  return new OnceError('transaction_aborted', message, { cause, applied: 'no' })
}

export function stoppedError(): OnceError {
  return new OnceError('stopped', 'The PostgreSQL store was stopped.')
}

function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map(messageOf).join(', ')
  return error instanceof Error ? error.message : String(error)
}
