import type { Deadline } from '../../store/deadline.ts'
import type { Held } from '../../store/sql/connection.ts'
import { borrowInTime, holdConnection, inTransaction as inTransactionOn } from '../../store/sql/connection.ts'
import type { StoredRow } from '../../store/sql/tables.ts'
import type { SqlValue } from '../../store/sql.ts'
import type { MariadbConnection, MariadbPool, MariadbQuery } from './driver.ts'
import { errors } from './errors.ts'

/** A connection of the pool while the store holds it. */
export interface Connection extends Held {
  /** The rows of one statement, or none where it gives none. */
  query(text: string, values?: readonly SqlValue[]): Promise<readonly StoredRow[]>
  /** The same for a statement of an effect: its numbers arrive as the pool is set, by default with every digit. */
  effectQuery(text: string, values?: readonly SqlValue[]): Promise<readonly StoredRow[]>
  command(text: string): Promise<unknown>
}

/** Whatever the pool is set to: a row is an object by its columns. */
const ROWS = { rowsAsArray: false, nestTables: false, metaAsArray: false }

function createConnection(driver: MariadbConnection): Connection {
  const held = holdConnection(driver, { close: () => driver.destroy(), giveBack: () => giveBack(driver) })
  const send = async (settings: MariadbQuery, values: readonly SqlValue[]) => {
    const result = await held.send(() => driver.query(settings, values.map(bindable)))
    return Array.isArray(result) ? (result as readonly StoredRow[]) : []
  }
  const query: Connection['query'] = (sql, values = []) =>
    send({ ...ROWS, sql, bigIntAsNumber: true, insertIdAsNumber: true }, values)
  const effectQuery: Connection['effectQuery'] = (sql, values = []) => send({ ...ROWS, sql }, values)
  return Object.assign(held, { query, effectQuery, command: query })
}

/** The driver rolls back what is open; a connection that cannot is closed by it. */
function giveBack(driver: MariadbConnection): void {
  driver.release().catch(() => undefined)
}

/** The driver knows bytes as a `Buffer` only. */
function bindable(value: SqlValue): SqlValue {
  return value instanceof Uint8Array && !Buffer.isBuffer(value) ? Buffer.from(value) : value
}

export async function borrow(pool: MariadbPool, deadline: Deadline): Promise<Connection> {
  return createConnection(await borrowInTime(() => pool.getConnection(), deadline, errors, giveBack))
}

/** Whatever default the connections have: a repeatable read would not see what others have committed. */
export const ISOLATION = 'SET TRANSACTION ISOLATION LEVEL READ COMMITTED'

export async function inTransaction<T>(connection: Connection, work: () => Promise<T>): Promise<T> {
  await connection.command(ISOLATION)
  return await inTransactionOn(connection, 'START TRANSACTION', work)
}
