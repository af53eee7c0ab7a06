import type { AppliedWord, ErrorOptions } from '../../core/errors.ts'
import { isOnceError, OnceError } from '../../core/errors.ts'
import type { ServerErrors } from './calls.ts'

/** An error that a database server reported, as its store reads it. */
export interface ServerError {
  readonly kind: ServerErrorKind
  /** For people, with the server's code. */
  readonly reason: string
}

export type ServerErrorKind =
  /** The server undid the statement, because others were in its way; it may be repeated as it is. */
  | 'busy'
  /** The server ended the session. */
  | 'session_over'
  /** May end a session, or come from within a commit: the statement may have taken effect. */
  | 'in_doubt'
  /** The value, not the statement, was refused. */
  | 'data'
  /** Tables are gone: they were dropped or restored under a running process. */
  | 'schema_gone'
  /** The transaction can continue only from a savepoint: a statement in it has failed. */
  | 'aborted'
  /** The user has no privilege for it: only a grant changes that. */
  | 'forbidden'
  /** The server, or the transaction, takes no writes. */
  | 'read_only'
  /** Whatever else the server refuses (a full disk) it did not do. */
  | 'refused'

export interface SqlServerErrors extends ServerErrors {
  is(kind: ServerErrorKind, error: unknown): boolean
  /** No statement was sent, so nothing can have happened. */
  connectError(error: unknown): OnceError
}

const GRANT = {
  retryable: false,
  next: 'Grant that to the user as which the store connects; repeating the call does not help.',
}
const TO_PRIMARY = {
  next: 'Connect the store to a server that takes writes: a standby does not, nor does a session that is set to read-only.',
}

/** `read` answers null for what is no error of the server: then nothing came back from it. */
export function createServerErrors(database: string, read: (error: unknown) => ServerError | null): SqlServerErrors {
  const is = (kind: ServerErrorKind, error: unknown) => read(error)?.kind === kind
  const fault = (
    code: 'store_unavailable' | 'store_busy' | 'row_refused',
    text: string,
    cause: unknown,
    applied: AppliedWord,
    advice: Pick<ErrorOptions, 'next' | 'retryable'> = {},
  ) => new OnceError(code, text, { cause, applied, ...advice })

  function storeError(error: unknown, whenLost: AppliedWord): OnceError {
    if (isOnceError(error)) return error
    const { kind, reason } = read(error) ?? { kind: 'in_doubt', reason: messageOf(error) }
    switch (kind) {
      case 'session_over':
      case 'in_doubt':
        return fault('store_unavailable', `The connection to ${database} was lost (${reason}).`, error, whenLost)
      case 'busy':
        return fault('store_busy', `${database} undid the statement: ${reason}.`, error, 'no')
      case 'data':
        return fault('row_refused', `${database} refused a value: ${reason}.`, error, 'no')
      case 'aborted':
        return abortedError(error)
      case 'forbidden':
        return fault('store_unavailable', `${database} refused the statement: ${reason}.`, error, 'no', GRANT)
      case 'read_only':
        // After a failover the next connection may lead to the primary, so it may be tried again.
        return fault('store_unavailable', `${database} takes no writes here: ${reason}.`, error, 'no', TO_PRIMARY)
      case 'schema_gone':
      case 'refused':
        return fault('store_unavailable', `${database} refused the statement: ${reason}.`, error, 'no')
    }
  }

  return {
    is,
    isConnectionLost: (error) => (read(error) === null && !isOnceError(error)) || is('session_over', error),
    isSchemaGone: (error) => is('schema_gone', error),
    leavesConnectionUsable: (error) => is('busy', error) || is('data', error),
    storeError,
    connectError: (error) => {
      if (isOnceError(error)) return error
      return fault('store_unavailable', `${database} cannot be reached: ${messageOf(error)}.`, error, 'no')
    },
    timeoutError: (timeoutMs, applied) =>
      new OnceError('store_unavailable', `${database} did not answer within ${timeoutMs} ms.`, { applied }),
    stoppedError: () => new OnceError('stopped', `The ${database} store was stopped.`),
  }
}

/** Nothing was committed, whatever the effect believes. */
export function abortedError(cause?: unknown): OnceError {
  const message = 'A statement of this transaction failed, and the effect continued as if it had not.'
  return new OnceError('transaction_aborted', message, { cause, applied: 'no' })
}

/** For people; an error of several attempts to connect has no words of its own. */
export function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map(messageOf).join(', ')
  return error instanceof Error ? error.message : String(error)
}
