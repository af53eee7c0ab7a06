import type { AppliedWord, OnceError } from '../../core/errors.ts'
import { limits } from '../../core/limits.ts'
import type { Deadline } from '../../store/deadline.ts'
import { createDeadline, inTime } from '../../store/deadline.ts'
import { LEDGER_ROOM } from '../../store/ledger-migrations.ts'
import type { MigrateMode } from '../../store/migrations.ts'
import type { Call } from '../../store/port.ts'
import type { Connection } from './connection.ts'
import { borrow } from './connection.ts'
import type { PgPool } from './driver.ts'
import {
  isConnectionLost,
  isSchemaGone,
  leavesConnectionUsable,
  stoppedError,
  storeError,
  timeoutError,
} from './errors.ts'
import type { Names } from './names.ts'
import { ledgerTables, liftFences, MIGRATION_MS, migrate, pendingSql } from './schema.ts'
import type { TextRow } from './statement.ts'
import { plannedOn } from './statement.ts'

/** What the parts of one store share. */
export interface Core {
  readonly pool: PgPool
  readonly names: Names
  /** Runs the work under a deadline, once the tables are there. Refused after `stop`, which waits for it. */
  call<T>(call: Call, work: (deadline: Deadline) => Promise<T>): Promise<T>
  /** The same for requests that were accepted before `stop`. */
  flush<T>(call: Call, work: (deadline: Deadline) => Promise<T>): Promise<T>
  /** Runs the work on a client of its own. Errors become the store's, unless `told` says otherwise. */
  read<T>(call: Call, work: (on: Borrowed) => Promise<T>): Promise<T>
  write<T>(call: Call, work: (on: Borrowed) => Promise<T>, told?: (error: unknown) => unknown): Promise<T>
  /** An error as the port reports it; detects missing tables, so that the next call creates them again. */
  fault(error: unknown, whenLost: AppliedWord): OnceError
  migrate(room: string, migrations: Parameters<typeof migrate>[3]): Promise<void>
  /** What `migrate` would run, for the ledger's tables too. */
  pendingSql(rooms: Parameters<typeof pendingSql>[2]): Promise<readonly string[]>
  /** A connection broke: the next one may lead to another server, so the next call looks at the tables again. */
  suspect(): void
  /** Refuses new calls and waits for those under way; `accepted` ends when all accepted requests were flushed. */
  drain(accepted: Promise<void>): Promise<void>
}

export interface Borrowed {
  readonly connection: Connection
  /** One statement; values arrive as text. */
  rows(text: string, values?: unknown[]): Promise<readonly TextRow[]>
}

export function createCore(pool: PgPool, names: Names, mode: MigrateMode): Core {
  const idle: (() => void)[] = []
  let underWay = 0
  let stopped = false
  let tablesThere = false
  let preparing: Promise<void> | null = null
  /** Ends a migration without waiters. */
  const stopping = new AbortController()

  function fault(error: unknown, whenLost: AppliedWord): OnceError {
    if (isSchemaGone(error) || isConnectionLost(error)) tablesThere = false
    return storeError(error, whenLost)
  }

  async function onClient<T>(
    deadline: Deadline,
    whenLost: AppliedWord,
    work: (on: Borrowed) => Promise<T>,
    told = (error: unknown): unknown => fault(error, whenLost),
  ): Promise<T> {
    const connection = await borrow(pool, deadline)
    const off = deadline.onPassed(() => connection.destroy(timeoutError(deadline.timeoutMs, whenLost)))
    const executor = plannedOn(connection)
    const rows = (text: string, values: unknown[] = []) => executor.run({ name: '', text }, values)
    try {
      return await work({ connection, rows })
    } catch (error) {
      if (!leavesConnectionUsable(error)) connection.destroy(error as Error)
      throw told(error)
    } finally {
      off()
      connection.release()
    }
  }

  async function runMigrations(room: string, migrations: Parameters<typeof migrate>[3]): Promise<void> {
    const connecting = createDeadline(limits.storeCallMs, stopping.signal)
    const connection = await borrow(pool, connecting).finally(() => connecting.end())
    const deadline = createDeadline(MIGRATION_MS, stopping.signal)
    deadline.onPassed(() => connection.destroy(timeoutError(MIGRATION_MS, 'no')))
    try {
      await migrate(connection, names, room, migrations, mode)
      if (room === LEDGER_ROOM) await liftFences(connection, names)
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
  function prepare(): Promise<void> {
    preparing ??= runMigrations(LEDGER_ROOM, ledgerTables(names))
      .then(() => {
        tablesThere = true
      })
      .finally(() => {
        preparing = null
      })
    return preparing
  }

  async function call<T>(given: Call, work: (deadline: Deadline) => Promise<T>): Promise<T> {
    if (stopped) throw stoppedError()
    return await flush(given, work)
  }

  async function flush<T>({ timeoutMs }: Call, work: (deadline: Deadline) => Promise<T>): Promise<T> {
    underWay += 1
    const deadline = createDeadline(timeoutMs)
    try {
      if (!tablesThere) await inTime(prepare(), deadline, () => timeoutError(timeoutMs, 'no'))
      return await work(deadline)
    } finally {
      deadline.end()
      underWay -= 1
      if (underWay === 0) for (const wake of idle.splice(0)) wake()
    }
  }

  return {
    pool,
    names,
    call,
    flush,
    read: (given, work) => call(given, (deadline) => onClient(deadline, 'no', work)),
    write: (given, work, told) => call(given, (deadline) => onClient(deadline, 'maybe', work, told)),
    fault,
    // Not through `call`, which would first create the tables that are asked about.
    pendingSql: async (rooms) => {
      if (stopped) throw stoppedError()
      const deadline = createDeadline(limits.storeCallMs, stopping.signal)
      const all = { [LEDGER_ROOM]: ledgerTables(names), ...rooms }
      return await onClient(deadline, 'no', ({ connection }) => pendingSql(connection, names, all)).finally(() =>
        deadline.end(),
      )
    },
    migrate: (room, migrations) => call({ timeoutMs: MIGRATION_MS }, () => runMigrations(room, migrations)),
    suspect: () => {
      tablesThere = false
    },
    drain: async (accepted) => {
      stopped = true
      await accepted
      if (underWay > 0) await new Promise<void>((resolve) => idle.push(resolve))
      stopping.abort()
      await preparing?.catch(() => undefined)
    },
  }
}
