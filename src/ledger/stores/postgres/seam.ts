import { OnceError } from '../../core/errors.ts'
import { limits } from '../../core/limits.ts'
import { plainTexts } from '../../store/encryption/plain.ts'
import { LEDGER_ROOM } from '../../store/ledger-migrations.ts'
import type { Transactions } from '../../store/port.ts'
import { runIn } from '../../store/script.ts'
import { inTransaction } from '../../store/sql/connection.ts'
import type { Migration, QueryHow, Script, SqlRow, SqlSeam, SqlTx, SqlValue } from '../../store/sql.ts'
import { nowSql } from './clock-sql.ts'
import type { Core } from './core.ts'
import { postgres } from './dialect.ts'
import { errors, isBusy, isSessionOver, sqlErrorOf } from './errors.ts'
import type { Lanes } from './lanes.ts'
import { findOwnTables } from './names.ts'
import { numbered, rowsOf } from './tx.ts'
import type { Watchers } from './watch.ts'

const CALL = { timeoutMs: limits.storeCallMs }
const SCRIPT_CALL = { ...CALL, lockMs: limits.transactionLockMs, refuseTwinOf: null }

function translate(error: unknown): unknown {
  return sqlErrorOf(error) === null || isBusy(error) || isSessionOver(error) ? errors.storeError(error, 'maybe') : error
}

interface SeamParts {
  readonly core: Core
  readonly watchers: Watchers
  readonly transactions: Transactions<SqlTx>
  /** For hot statements. */
  readonly lanes: Lanes
}

/** Tables of other rooms, beside ours. Errors of their SQL are theirs; errors of the connection are the store's. */
export function createSqlSeam({ core, watchers, transactions, lanes }: SeamParts): SqlSeam {
  const { names } = core
  const findTables = findOwnTables(names, 'transaction')
  const hotNames = new Map<string, string>()

  /** Under the same name on every lane, so that the server knows it again. */
  function nameOf(text: string): string {
    const known = hotNames.get(text)
    if (known !== undefined) return known
    const name = `onceonly_hot_${hotNames.size}`
    hotNames.set(text, name)
    return name
  }

  /** On a lane, whose sessions are ours: there statements stay prepared, and names lead to our tables. */
  function hot<Row>(text: string, values: readonly SqlValue[]): Promise<readonly Row[]> {
    return core.call(CALL, (deadline) =>
      lanes.use(deadline, async (lane) => {
        try {
          return rowsOf<Row>(await lane.query(nameOf(text), numbered(text), values))
        } catch (error) {
          if (!errors.leavesConnectionUsable(error)) lane.connection.destroy(error as Error)
          throw translate(error)
        }
      }),
    )
  }

  function plain<Row>(text: string, values: readonly SqlValue[]): Promise<readonly Row[]> {
    return core.write(
      CALL,
      async ({ connection }) => {
        const statement = { text: numbered(text), values: [...values] }
        if (findTables === '') return rowsOf<Row>(await connection.query(statement))
        // The path holds for a transaction only, so that the client goes back to the user as it came.
        const result = await inTransaction(connection, `BEGIN; ${findTables}`, () => connection.query(statement))
        return rowsOf<Row>(result)
      },
      translate,
    )
  }

  return {
    ...plainTexts,
    dialect: postgres,
    now: nowSql(names),
    wake: watchers.wake,
    listen: watchers.listen,
    migrate: async (room, migrations) => {
      if (room.trim() === '' || room === LEDGER_ROOM) {
        throw new OnceError('bad_option', `A room cannot be named \`${room}\`.`)
      }
      await core.migrate(room, migrations.map(statementsOf))
    },
    pendingSql: (rooms) =>
      core.pendingSql(
        Object.fromEntries(Object.entries(rooms).map(([room, migrations]) => [room, migrations.map(statementsOf)])),
      ),
    query: async <Row = SqlRow>(text: string, values: readonly SqlValue[] = [], how: QueryHow = {}) => {
      if (how.quiet !== true) return await (how.hot === true ? hot<Row>(text, values) : plain<Row>(text, values))
      const rows = await plain<Row & Numbered>(withNumber(text), values)
      if (rows[0] !== undefined) watchers.quiet(rows[0].onceonly_transaction)
      return rows
    },
    script: <T>(begin: () => Script<T>) => transactions.run(({ tx }) => runIn(tx, begin()), SCRIPT_CALL),
  }
}

interface Numbered {
  readonly onceonly_transaction: string
}

/** A statement that writes, with the number of its transaction in each row. */
function withNumber(text: string): string {
  return `WITH quiet AS (${text}) SELECT quiet.*, pg_current_xact_id()::text AS onceonly_transaction FROM quiet`
}

function statementsOf({ version, oldestCode, up }: Migration) {
  return { version, oldestCode, statements: up(postgres) }
}
