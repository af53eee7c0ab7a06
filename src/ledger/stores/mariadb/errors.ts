import type { ServerErrorKind } from '../../store/sql/errors.ts'
import { createServerErrors } from '../../store/sql/errors.ts'

/** The driver numbers its own errors from here on; those of the server are smaller. */
const DRIVER_ERRNO = 45_000
/** A lock did not become free in time. Whether more than the statement was undone is a setting of the server. */
const LOCK_TIMEOUT = 1205
/** All statements of the transaction were undone, so that the next one would be on its own. */
const ROLLED_BACK: readonly number[] = [1213, 1020]
const KINDS: Readonly<Partial<Record<ServerErrorKind, readonly number[]>>> = {
  // A lock did not become free in time, or never would have.
  busy: [LOCK_TIMEOUT, ...ROLLED_BACK],
  // Shutdown, kill, time-outs.
  session_over: [1053, 1152, 1158, 1159, 1160, 1161, 1184, 1317, 1927, 1969, 3024],
  schema_gone: [1049, 1054, 1146, 4091],
  data: [1366, 1406, 1153],
  forbidden: [1044, 1142, 1143, 1227],
  // `read_only` of the server, and a transaction that was begun so.
  read_only: [1290, 1792, 1836],
}
const kindByErrno = new Map(
  Object.entries(KINDS).flatMap(([kind, codes]) => codes.map((code) => [code, kind as ServerErrorKind] as const)),
)
const DATA = /^(22|23)/

/** By shape: null for errors of the socket and of the driver itself. */
function errnoOf(error: unknown): number | null {
  if (!(error instanceof Error) || !('errno' in error) || !('sqlState' in error)) return null
  const { errno } = error
  return typeof errno === 'number' && errno > 0 && errno < DRIVER_ERRNO ? errno : null
}

export const errors = createServerErrors('MariaDB', (error) => {
  const errno = errnoOf(error)
  if (errno === null) return null
  const { sqlState, sqlMessage } = error as { readonly sqlState?: unknown; readonly sqlMessage?: unknown }
  const kind = kindByErrno.get(errno) ?? (DATA.test(String(sqlState)) ? 'data' : 'refused')
  // Not the driver's own message, which repeats the statement with its values.
  return { kind, reason: `${String(sqlMessage)} (error ${errno})` }
})

export const isBusy = (error: unknown): boolean => errors.is('busy', error)
export const isSessionOver = (error: unknown): boolean => errors.is('session_over', error)
export const isLockTimeout = (error: unknown): boolean => errnoOf(error) === LOCK_TIMEOUT
export const isRolledBack = (error: unknown): boolean => ROLLED_BACK.includes(errnoOf(error) ?? 0)
