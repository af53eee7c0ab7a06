import { OnceError } from '../../core/errors.ts'
import { limits } from '../../core/limits.ts'
import { LEDGER_ROOM } from '../../store/ledger-migrations.ts'
import type { SqlRow, SqlSeam, SqlValue } from '../../store/sql.ts'
import { nowSql } from './clock-sql.ts'
import { inTransaction } from './connection.ts'
import type { Core } from './core.ts'
import { isBusy, isSessionOver, sqlErrorOf, storeError } from './errors.ts'
import { findOwnTables } from './names.ts'
import { numbered, rowsOf } from './tx.ts'
import type { Watchers } from './watch.ts'

const CALL = { timeoutMs: limits.storeCallMs }

function told(error: unknown): unknown {
  return sqlErrorOf(error) === null || isBusy(error) || isSessionOver(error) ? storeError(error, 'maybe') : error
}

/** Tables of other rooms, beside ours. Errors of their SQL are theirs; errors of the connection are the store's. */
export function createSqlSeam(core: Core, watchers: Watchers): SqlSeam {
  const { names } = core
  const findTables = findOwnTables(names)
  return {
    dialect: 'postgres',
    now: nowSql(names),
    wake: watchers.wake,
    listen: watchers.listen,
    migrate: async (room, migrations) => {
      if (room.trim() === '' || room === LEDGER_ROOM) {
        throw new OnceError('bad_option', `A room cannot be named \`${room}\`.`)
      }
      await core.migrate(
        room,
        migrations.map(({ version, oldestCode, up }) => ({ version, oldestCode, statements: up.postgres })),
      )
    },
    query: <Row = SqlRow>(text: string, values: readonly SqlValue[] = []) =>
      core.write(
        CALL,
        async ({ connection }) => {
          const statement = { text: numbered(text), values: [...values] }
          if (findTables === '') return rowsOf<Row>(await connection.query(statement))
          // The path holds for a transaction only, so that the client goes back to the user as it came.
          const result = await inTransaction(connection, `BEGIN; ${findTables}`, () => connection.query(statement))
          return rowsOf<Row>(result)
        },
        told,
      ),
  }
}
