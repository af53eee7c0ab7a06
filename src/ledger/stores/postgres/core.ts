import { LEDGER_ROOM } from '../../store/ledger-migrations.ts'
import type { MigrateMode } from '../../store/migrations.ts'
import type { Call } from '../../store/port.ts'
import type { Remembered } from '../../store/remembered.ts'
import { createRemembered } from '../../store/remembered.ts'
import type { Calls } from '../../store/sql/calls.ts'
import { createCalls } from '../../store/sql/calls.ts'
import type { Clients } from './clients.ts'
import type { Connection } from './connection.ts'
import { errors } from './errors.ts'
import type { RecordsLost } from './lost.ts'
import { findLost } from './lost.ts'
import type { Names } from './names.ts'
import { ledgerTables, liftFences, migrate, pendingSql } from './schema.ts'
import type { TextRow } from './statement.ts'
import { plannedOn } from './statement.ts'

/** What the parts of one store share. */
export interface Core extends Pick<Calls<Connection>, 'call' | 'callBeside' | 'flush' | 'fault' | 'suspect' | 'drain'> {
  readonly clients: Clients
  readonly names: Names
  /** What this process was acknowledged last. */
  readonly remembered: Remembered
  /** Runs the work on a client of its own. Errors become the store's, unless `translate` says otherwise. */
  read<T>(call: Call, work: (on: Borrowed) => Promise<T>): Promise<T>
  write<T>(call: Call, work: (on: Borrowed) => Promise<T>, translate?: (error: unknown) => unknown): Promise<T>
  migrate(room: string, migrations: Parameters<typeof migrate>[3]): Promise<void>
  /** What `migrate` would run, for the ledger's tables too. */
  pendingSql(rooms: Parameters<typeof pendingSql>[2]): Promise<readonly string[]>
}

export interface Borrowed {
  readonly connection: Connection
  /** One statement; values arrive as text. */
  rows(text: string, values?: unknown[]): Promise<readonly TextRow[]>
}

export interface CoreParts {
  readonly clients: Clients
  readonly names: Names
  readonly mode: MigrateMode
  readonly report: (event: RecordsLost) => void
}

export function createCore({ clients, names, mode, report }: CoreParts): Core {
  const remembered = createRemembered()
  const own = ledgerTables(names)
  const { call, callBeside, flush, fault, suspect, drain, ...calls } = createCalls<Connection>({
    errors,
    borrow: clients.borrow,
    prepare: async (connection) => {
      await clients.detect(connection)
      await migrate(connection, names, LEDGER_ROOM, own, mode)
      await liftFences(connection, names)
      const lost = await findLost(connection, names, remembered)
      if (lost !== null) report(lost)
    },
  })
  return {
    clients,
    names,
    remembered,
    call,
    callBeside,
    flush,
    fault,
    suspect,
    drain,
    read: (given, work) => calls.read(given, (connection) => work(borrowed(connection))),
    write: (given, work, translate) => calls.write(given, (connection) => work(borrowed(connection)), translate),
    pendingSql: (rooms) =>
      calls.readBeforeTables((connection) => pendingSql(connection, names, { [LEDGER_ROOM]: own, ...rooms })),
    migrate: (room, migrations) => calls.migrate((connection) => migrate(connection, names, room, migrations, mode)),
  }
}

function borrowed(connection: Connection): Borrowed {
  const executor = plannedOn(connection)
  return { connection, rows: (text, values = []) => executor.run({ name: '', text }, values) }
}
