import type { ServerErrorKind } from '../../store/sql/errors.ts'
import { createServerErrors } from '../../store/sql/errors.ts'

export { abortedError } from '../../store/sql/errors.ts'

interface SqlError {
  readonly code: string
  readonly message: string
}

/** By shape: system errors such as `EPIPE` have a code too, but only the server's own errors have a severity. */
export function sqlErrorOf(error: unknown): SqlError | null {
  if (!(error instanceof Error) || !('code' in error) || !('severity' in error)) return null
  return typeof error.code === 'string' ? { code: error.code, message: error.message } : null
}

/**
 * The queue of notifications is full, because some session listens and never reads. The code equals that of a row that is
 * too large for an index; only the server's source file distinguishes them, and it is not translated.
 */
const LIMIT_EXCEEDED = '54000'
const NOTIFY_SOURCE = 'async.c'

/** By code, never by severity, which is translated. */
const KINDS: readonly (readonly [ServerErrorKind, RegExp])[] = [
  // Serialisation failure, deadlock, lock time-out.
  ['busy', /^(40001|40P01|55P03)$/],
  ['session_over', /^(08|57P|25P03)/],
  ['in_doubt', /^(58|XX)/],
  // A NUL character, a number out of range, an index row that is too large.
  ['data', /^(22|23|54)/],
  ['schema_gone', /^(42P01|42703|3F000)$/],
  ['aborted', /^25P02$/],
  ['forbidden', /^42501$/],
  ['read_only', /^25006$/],
]

function kindOf(error: unknown, code: string): ServerErrorKind {
  if (code === LIMIT_EXCEEDED && (error as { file?: unknown }).file === NOTIFY_SOURCE) return 'busy'
  return KINDS.find(([, codes]) => codes.test(code))?.[0] ?? 'refused'
}

export const errors = createServerErrors('PostgreSQL', (error) => {
  const sql = sqlErrorOf(error)
  return sql === null ? null : { kind: kindOf(error, sql.code), reason: `${sql.message} (SQLSTATE ${sql.code})` }
})

export const isBusy = (error: unknown): boolean => errors.is('busy', error)
export const isSessionOver = (error: unknown): boolean => errors.is('session_over', error)
export const isReadOnly = (error: unknown): boolean => errors.is('read_only', error)
export const isAborted = (error: unknown): boolean => errors.is('aborted', error)

/** For a call that waited for a client and got none. */
export const SECOND_CLIENT =
  'Inside a transaction of your own, call `within` with its handle instead of `run`; else check the server and the size of the pool.'

/** A prepared statement is missing, or is there already although this process did not prepare it. */
export function isUnprepared(error: unknown): boolean {
  return /^(26000|42P05)$/.test(sqlErrorOf(error)?.code ?? '')
}

/** The statement needs a privilege that the user does not have. */
export function isForbidden(error: unknown): boolean {
  return errors.is('forbidden', error)
}
