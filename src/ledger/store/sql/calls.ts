import type { AppliedWord, OnceError } from '../../core/errors.ts'
import { isOnceError } from '../../core/errors.ts'
import { limits, MINUTE } from '../../core/limits.ts'
import { createCallsUnderWay } from '../calls-under-way.ts'
import type { Deadline } from '../deadline.ts'
import { createDeadline, inTime } from '../deadline.ts'
import type { Call } from '../port.ts'

/** A connection of a pool while a store holds it. */
export interface HeldConnection {
  /** Ends it now; what is under way rejects with the reason. */
  destroy(reason: Error): void
  release(): void
}

/** How a server's errors are read, and what the store makes of them. */
export interface ServerErrors {
  /** Nothing came back from the server, or it said that the session is over. */
  isConnectionLost(error: unknown): boolean
  /** Tables are gone: they were dropped or restored under a running process. */
  isSchemaGone(error: unknown): boolean
  /** True when the connection is still good for the next statement. */
  leavesConnectionUsable(error: unknown): boolean
  /** `whenLost` says what a lost answer means: `maybe` for a write that was under way, `no` before it or for a read. */
  storeError(error: unknown, whenLost: AppliedWord): OnceError
  timeoutError(timeoutMs: number, applied: AppliedWord): OnceError
  stoppedError(): OnceError
}

export interface CallsOptions<C extends HeldConnection> {
  readonly errors: ServerErrors
  /** A connection from the pool, in time. */
  borrow(deadline: Deadline): Promise<C>
  /** Brings the ledger's tables up to date. */
  prepare(connection: C): Promise<void>
}

/** The calls of a store on a database server: deadlines, connections, tables that are made when first needed, the end. */
export interface Calls<C extends HeldConnection> {
  /** Runs the work under a deadline, once the tables are there. Refused after `stop`, which waits for it. */
  call<T>(call: Call, work: (deadline: Deadline) => Promise<T>): Promise<T>
  /**
   * The same beside an open transaction, which may hold the only connection: tables that could not be looked at soon are
   * taken for granted, and the transaction's own statements find out.
   */
  callBeside<T>(call: Call, work: (tablesThere: boolean) => Promise<T>): Promise<T>
  /** The same for requests that were accepted before `stop`. */
  flush<T>(call: Call, work: (deadline: Deadline) => Promise<T>): Promise<T>
  /** Runs the work on a connection of its own. Errors become the store's, unless `translate` says otherwise. */
  read<T>(call: Call, work: (connection: C) => Promise<T>): Promise<T>
  write<T>(call: Call, work: (connection: C) => Promise<T>, translate?: (error: unknown) => unknown): Promise<T>
  /** Not through `call`, which would first create the tables that are asked about. */
  readBeforeTables<T>(work: (connection: C) => Promise<T>): Promise<T>
  migrate(work: (connection: C) => Promise<void>): Promise<void>
  /** An error as the port reports it; detects missing tables, so that the next call creates them again. */
  fault(error: unknown, whenLost: AppliedWord): OnceError
  /** A connection broke: the next one may lead to another server, so the next call looks at the tables again. */
  suspect(): void
  /** Refuses new calls and waits for those under way; `accepted` ends when all accepted requests were flushed. */
  drain(accepted: Promise<void>): Promise<void>
}

/** Waiting for another process that migrates: it may build an index over a large table meanwhile. */
export const MIGRATION_MS = 10 * MINUTE

export function createCalls<C extends HeldConnection>({ errors, borrow, prepare }: CallsOptions<C>): Calls<C> {
  const { timeoutError, stoppedError } = errors
  const underWay = createCallsUnderWay(stoppedError)
  let tablesThere = false
  let preparing: Promise<void> | null = null
  /** Ends a migration without waiters. */
  const stopping = new AbortController()

  function fault(error: unknown, whenLost: AppliedWord): OnceError {
    if (errors.isSchemaGone(error) || errors.isConnectionLost(error)) tablesThere = false
    return errors.storeError(error, whenLost)
  }

  async function onConnection<T>(
    deadline: Deadline,
    whenLost: AppliedWord,
    work: (connection: C) => Promise<T>,
    translate = (error: unknown): unknown => fault(error, whenLost),
  ): Promise<T> {
    const connection = await borrow(deadline)
    const off = deadline.onPassed(() => connection.destroy(timeoutError(deadline.timeoutMs, whenLost)))
    try {
      return await work(connection)
    } catch (error) {
      if (!errors.leavesConnectionUsable(error)) connection.destroy(error as Error)
      throw translate(error)
    } finally {
      off()
      connection.release()
    }
  }

  async function runMigrations(work: (connection: C) => Promise<void>): Promise<void> {
    const connecting = createDeadline(limits.storeCallMs, stopping.signal)
    const connection = await borrow(connecting).finally(() => connecting.end())
    const deadline = createDeadline(MIGRATION_MS, stopping.signal)
    deadline.onPassed(() => connection.destroy(timeoutError(MIGRATION_MS, 'no')))
    try {
      await work(connection)
      connection.release()
    } catch (error) {
      // Closing it rolls back whatever had begun.
      connection.destroy(error as Error)
      throw fault(error, 'no')
    } finally {
      deadline.end()
    }
  }

  /** Lazily, so that a store can be made while the server is away; one attempt serves all callers that wait. */
  function makeTables(): Promise<void> {
    preparing ??= runMigrations(prepare)
      .then(() => {
        tablesThere = true
      })
      .finally(() => {
        preparing = null
      })
    return preparing
  }

  async function call<T>(given: Call, work: (deadline: Deadline) => Promise<T>): Promise<T> {
    underWay.check()
    return await flush(given, work)
  }

  async function flush<T>({ timeoutMs }: Call, work: (deadline: Deadline) => Promise<T>): Promise<T> {
    return await counted(timeoutMs, async (deadline) => {
      if (!tablesThere) await inTime(makeTables(), deadline, () => timeoutError(timeoutMs, 'no'))
      return await work(deadline)
    })
  }

  async function callBeside<T>({ timeoutMs }: Call, work: (tablesThere: boolean) => Promise<T>): Promise<T> {
    underWay.check()
    return await counted(Math.min(timeoutMs, limits.besideTransactionMs), async (patience) => {
      if (!tablesThere) {
        await inTime(makeTables(), patience, () => timeoutError(patience.timeoutMs, 'no')).catch((error: unknown) => {
          // No connection, or not in time.
          if (!isOnceError(error, 'store_unavailable') || !error.retryable) throw error
        })
      }
      return await work(tablesThere)
    })
  }

  async function counted<T>(timeoutMs: number, work: (deadline: Deadline) => Promise<T>): Promise<T> {
    underWay.begin()
    const deadline = createDeadline(timeoutMs)
    try {
      return await work(deadline)
    } finally {
      deadline.end()
      underWay.end()
    }
  }

  return {
    call,
    callBeside,
    flush,
    read: (given, work) => call(given, (deadline) => onConnection(deadline, 'no', work)),
    write: (given, work, translate) => call(given, (deadline) => onConnection(deadline, 'maybe', work, translate)),
    readBeforeTables: async (work) => {
      underWay.check()
      const deadline = createDeadline(limits.storeCallMs, stopping.signal)
      return await onConnection(deadline, 'no', work).finally(() => deadline.end())
    },
    migrate: (work) => call({ timeoutMs: MIGRATION_MS }, () => runMigrations(work)),
    fault,
    suspect: () => {
      tablesThere = false
    },
    drain: async (accepted) => {
      await underWay.drain(accepted)
      stopping.abort()
      await preparing?.catch(() => undefined)
    },
  }
}
