import { OnceError } from '../core/errors.ts'
import { noTransaction, noteSql } from './foreign.ts'
import type { Life, Reason } from './life.ts'
import type { OrmTransactions } from './orm.ts'
import type { Session } from './port.ts'
import type { SavepointSteps } from './savepoints.ts'
import { createSavepoints } from './savepoints.ts'
import type { Turns } from './sql/transactions.ts'
import type { SqlRow, SqlTx, SqlValue } from './sql.ts'
import { transactionControlOf } from './sql-text.ts'

/** What a transaction of an ORM has on every database. */
export interface ForeignParts {
  /** For tables of other rooms. */
  readonly sql: SqlTx
  outermost<T>(work: () => Promise<T>): Promise<T>
  apart<T>(work: () => Promise<T>): Promise<T>
  savepoint<T>(work: () => Promise<T>): Promise<T>
  idle(): Promise<void>
  close(why: Reason): void
}

/** An ORM with savepoints of its own sends them itself; statements take turns all the same. */
const unsent: SavepointSteps = { open: () => undefined, keep: () => undefined, undo: () => undefined }

/**
 * @param query sends a statement of another room, when it is its turn
 * @returns the parts, and `inTurn` for the statements of the store
 */
export function createForeignParts<Handle>(
  orm: OrmTransactions<Handle>,
  { life, turns, steps }: { readonly life: Life; readonly turns: Turns; readonly steps: SavepointSteps },
  query: (text: string, values: readonly SqlValue[]) => Promise<readonly SqlRow[]>,
) {
  const { inTurn, outermost, apart, savepoint } = createSavepoints(orm.savepoint === undefined ? steps : unsent, life)
  const parts: ForeignParts = {
    sql: {
      query: async <Row = SqlRow>(text: string, values: readonly SqlValue[] = []) => {
        if (transactionControlOf(text) !== null) {
          throw new OnceError('bad_option', 'Begin and end parts of a transaction through your ORM.')
        }
        return (await inTurn(() => query(text, values))) as readonly Row[]
      },
      inSavepoint: savepoint,
    },
    outermost,
    apart,
    savepoint,
    idle: turns.idle,
    close: (why) => life.end(why),
  }
  return { parts, inTurn }
}

/** One transaction for each handle: operations, an outbox and a ledger on another store share its connection. */
export function perHandle<Tx>() {
  const opened = new WeakMap<object, Tx>()
  return <Handle>(handle: Handle, make: () => Tx): Tx => {
    const key = handle as object
    const tx = opened.get(key) ?? make()
    opened.set(key, tx)
    return tx
  }
}

/** The transaction of a handle that an ORM has for a part of another one. */
interface Inner<Handle> {
  readonly tx: Pick<ForeignParts, 'sql'>
  readonly session: Session<Handle>
  end(): void
}

/** Runs the work in a part of the transaction, on the handle that the ORM has for it. */
export async function inOrmPart<Handle, T>(
  orm: OrmTransactions<Handle>,
  outer: { readonly handle: Handle; readonly tx: ForeignParts; readonly session: Session<Handle> },
  innerOf: (handle: Handle) => Inner<Handle>,
  work: (session: Session<Handle>) => Promise<T>,
): Promise<T> {
  const { handle, tx, session } = outer
  return await tx.savepoint(async () => {
    if (orm.savepoint === undefined) {
      const result = await work(session)
      await orm.flush?.(handle)
      return result
    }
    await orm.flush?.(handle)
    return await orm.savepoint(handle, (given) => {
      const inner = innerOf(given)
      noteSql(given, inner.tx.sql)
      return work(inner.session).finally(() => inner.end())
    })
  })
}

/** The SQL of a transaction that the user has open, apart from effects that run in it. */
export function sqlApart<Handle>(
  orm: OrmTransactions<Handle>,
  handle: Handle,
  txOf: (handle: Handle) => ForeignParts,
  around: <T>(sql: SqlTx, work: () => Promise<T>) => Promise<T> = (_sql, work) => work(),
): SqlTx {
  if (!orm.isTransaction(handle)) throw noTransaction(orm.name)
  const { sql, apart } = txOf(handle)
  return {
    query: (text, values) => apart(() => around(sql, () => sql.query(text, values))),
    inSavepoint: (work) => apart(() => sql.inSavepoint(work)),
  }
}
