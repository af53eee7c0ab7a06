import type { AppliedWord } from '../../core/errors.ts'
import { isOnceError, OnceError } from '../../core/errors.ts'

interface ServerError {
  readonly errno: number
  readonly sqlState: string
  readonly message: string
}

/** The driver numbers its own errors from here on; those of the server are smaller. */
const DRIVER_ERRNO = 45_000
/** A lock did not become free in time, or never would have: the server undid the statement, or all of them. */
const BUSY: ReadonlySet<number> = new Set([1205, 1213, 1020])
/** All statements of the transaction were undone, so that the next one would be on its own. */
const ROLLED_BACK: ReadonlySet<number> = new Set([1213, 1020])
/** The server ended the session, or the statement in the middle: shutdown, kill, time-outs. */
const SESSION_OVER: ReadonlySet<number> = new Set([1053, 1152, 1158, 1159, 1160, 1161, 1184, 1317, 1927, 1969, 3024])
/** The value, not the statement, was refused. */
const DATA = /^(22|23)/
const DATA_ERRNO: ReadonlySet<number> = new Set([1366, 1406, 1153])
const SCHEMA_GONE: ReadonlySet<number> = new Set([1049, 1054, 1146, 4091])

/** By shape: null for errors of the socket and of the driver itself. */
function serverErrorOf(error: unknown): ServerError | null {
  if (!(error instanceof Error) || !('errno' in error) || !('sqlState' in error)) return null
  const { errno, sqlState } = error
  if (typeof errno !== 'number' || errno <= 0 || errno >= DRIVER_ERRNO) return null
  // The driver's own message repeats the statement with its values.
  const message = 'sqlMessage' in error && typeof error.sqlMessage === 'string' ? error.sqlMessage : `error ${errno}`
  return { errno, sqlState: String(sqlState), message }
}

function isOneOf(codes: ReadonlySet<number>, error: unknown): boolean {
  const found = serverErrorOf(error)
  return found !== null && codes.has(found.errno)
}

export const isBusy = (error: unknown): boolean => isOneOf(BUSY, error)
export const isRolledBack = (error: unknown): boolean => isOneOf(ROLLED_BACK, error)
export const isSchemaGone = (error: unknown): boolean => isOneOf(SCHEMA_GONE, error)
export const isSessionOver = (error: unknown): boolean => isOneOf(SESSION_OVER, error)

export function isConnectionLost(error: unknown): boolean {
  return (serverErrorOf(error) === null && !isOnceError(error)) || isSessionOver(error)
}

function isData(error: ServerError): boolean {
  return DATA.test(error.sqlState) || DATA_ERRNO.has(error.errno)
}

export function leavesConnectionUsable(error: unknown): boolean {
  const found = serverErrorOf(error)
  return isBusy(error) || (found !== null && isData(found))
}

export function storeError(error: unknown, whenLost: AppliedWord): OnceError {
  if (isOnceError(error)) return error
  const found = serverErrorOf(error)
  if (found === null || isSessionOver(error)) {
    const text = `The connection to MariaDB was lost (${messageOf(error)}).`
    return new OnceError('store_unavailable', text, { cause: error, applied: whenLost })
  }
  const reason = `${found.message} (error ${found.errno})`
  if (isBusy(error)) {
    return new OnceError('store_busy', `MariaDB undid the statement: ${reason}.`, { cause: error, applied: 'no' })
  }
  if (isData(found)) {
    return new OnceError('row_refused', `MariaDB refused a value: ${reason}.`, { cause: error, applied: 'no' })
  }
  // Whatever else the server refuses (read-only, a missing privilege, a full disk) it did not do.
  return new OnceError('store_unavailable', `MariaDB refused the statement: ${reason}.`, {
    cause: error,
    applied: 'no',
  })
}

/** No statement was sent, so nothing can have happened. */
export function connectError(error: unknown): OnceError {
  if (isOnceError(error)) return error
  const text = `MariaDB cannot be reached: ${messageOf(error)}.`
  return new OnceError('store_unavailable', text, { cause: error, applied: 'no' })
}

export function timeoutError(timeoutMs: number, applied: AppliedWord): OnceError {
  return new OnceError('store_unavailable', `MariaDB did not answer within ${timeoutMs} ms.`, { applied })
}

export function stoppedError(): OnceError {
  return new OnceError('stopped', 'The MariaDB store was stopped.')
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
