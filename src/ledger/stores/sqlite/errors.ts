import type { AppliedWord } from '../../core/errors.ts'
import { OnceError } from '../../core/errors.ts'

/** SQLite's primary result codes: the low byte of what `node:sqlite` puts into `errcode`. */
const result = {
  error: 1,
  internal: 2,
  perm: 3,
  busy: 5,
  locked: 6,
  nomem: 7,
  readonly: 8,
  ioerr: 10,
  corrupt: 11,
  full: 13,
  cantopen: 14,
  protocol: 15,
  auth: 23,
  notadb: 26,
} as const

/** Null when the error is not SQLite's own. Other drivers than `node:sqlite` have the name of the code: `SQLITE_IOERR_READ`. */
function resultOf(error: unknown): number | null {
  if (!(error instanceof Error)) return null
  const { errcode, code } = error as { readonly errcode?: unknown; readonly code?: unknown }
  if (typeof errcode === 'number') return errcode & 0xff
  const name = typeof code === 'string' ? /^SQLITE_([A-Z]+)/.exec(code)?.[1]?.toLowerCase() : undefined
  return (result as Readonly<Record<string, number>>)[name ?? ''] ?? null
}

/** What a transaction has read is not the newest any more: it cannot write, however long it waits. */
export function isOutdated(error: unknown): boolean {
  const { errcode, code } = (error ?? {}) as { readonly errcode?: unknown; readonly code?: unknown }
  return errcode === BUSY_SNAPSHOT || code === 'SQLITE_BUSY_SNAPSHOT'
}

const BUSY_SNAPSHOT = 517

/** Another connection has the lock right now; the same statement will work in a moment. */
export function isBusy(error: unknown): boolean {
  const code = resultOf(error)
  // `protocol` is a race between processes that open or recover the write-ahead log.
  return code === result.busy || code === result.locked || code === result.protocol
}

export function isReadonly(error: unknown): boolean {
  return resultOf(error) === result.readonly
}

const broken: ReadonlySet<number> = new Set([
  result.internal,
  result.perm,
  result.nomem,
  result.readonly,
  result.ioerr,
  result.corrupt,
  result.full,
  result.cantopen,
  result.auth,
  result.notadb,
])

/** The file or the disk is at fault, not the row and not the statement. */
export function isBroken(error: unknown): boolean {
  const code = resultOf(error)
  return code !== null && broken.has(code)
}

export function unavailable(path: string, cause: unknown, applied: AppliedWord): OnceError {
  const what = cause instanceof Error ? cause.message : String(cause)
  return new OnceError('store_unavailable', `The SQLite file ${path} cannot be used: ${what}.`, { cause, applied })
}

/** The anchor of another boot appeared while this process ran: a second machine has the same file. */
export function otherMachine(): OnceError {
  const message = 'Another machine, or another boot, took over the SQLite file while this process had it open.'
  return new OnceError('store_unavailable', message, { applied: 'no' })
}

/** Another file, or none, has the name of the one that is open: what is written now is in no file that will be read. */
export function replaced(path: string): OnceError<'store_replaced'> {
  return new OnceError(
    'store_replaced',
    `The SQLite file ${path} was replaced or removed while this process had it open.`,
  )
}

export function busy(path: string, waitedMs: number, cause?: unknown): OnceError {
  const message = `The only writer of ${path} was taken for ${Math.round(waitedMs)} ms.`
  return new OnceError('store_busy', message, { applied: 'no', ...(cause === undefined ? {} : { cause }) })
}

export function stopped(path: string): OnceError {
  return new OnceError('stopped', `The SQLite store on ${path} was stopped.`)
}

export function refusedRow(why: string, cause?: unknown): OnceError<'row_refused'> {
  return new OnceError('row_refused', why, cause === undefined ? {} : { cause })
}
