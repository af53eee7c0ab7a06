import { limits } from '../../core/limits.ts'
import { inTransaction } from '../../store/sql/connection.ts'
import type { RecordTables, TableQuery } from '../../store/sql/tables.ts'
import { nowSql } from './clock-sql.ts'
import type { Borrowed, Core } from './core.ts'
import { postgres } from './dialect.ts'
import { numbered } from './tx.ts'

/** Whatever default the user's connections have: a repeatable read would fail where others have written. */
const BEGIN = 'BEGIN ISOLATION LEVEL READ COMMITTED'

export function createTables(core: Core): RecordTables {
  const { names } = core
  const inOne = <T>(begin: string, work: (query: TableQuery) => Promise<T>) => {
    return (on: Borrowed) => inTransaction(on.connection, begin, () => work(queryOn(on)))
  }
  return {
    dialect: postgres,
    records: names.records,
    unknownsKey: 'fence',
    unknowns: names.unknowns,
    tallies: names.tallies,
    now: nowSql(names),
    lastFence: `(SELECT last_value FROM ${names.fences})`,
    // Statements and transactions that grant a lease are ended by the server long before.
    inFlightMs: 3 * limits.storeCallMs,
    place: { column: 'id', type: 'id' },
    byId: (id) => `r.id = ${id}`,
    stepRows: limits.scanRows,
    writeRows: limits.tallyRows,
    countsInSteps: false,
    read: (call, work) => core.read(call, (on) => work(queryOn(on))),
    scan: (call, work) => {
      const begin = `${BEGIN} READ ONLY; SET LOCAL statement_timeout = ${Math.ceil(call.timeoutMs)}`
      return core.read(call, inOne(begin, work))
    },
    write: (call, work) => core.write(call, inOne(BEGIN, work)),
  }
}

function queryOn({ rows }: Borrowed): TableQuery {
  return (text, values = []) => rows(numbered(text), [...values])
}
