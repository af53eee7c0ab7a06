import { limits } from '../../core/limits.ts'
import type { Calls } from '../../store/sql/calls.ts'
import type { RecordTables } from '../../store/sql/tables.ts'
import { NOW } from './clock-sql.ts'
import type { Connection } from './connection.ts'
import { inTransaction } from './connection.ts'
import { mariadb } from './dialect.ts'

export function createTables(calls: Calls<Connection>): RecordTables {
  return {
    dialect: mariadb,
    records: 'onceonly_records',
    unknownsKey: 'fence',
    unknowns: 'onceonly_unknowns',
    tallies: 'onceonly_tallies',
    now: NOW,
    lastFence: '(SELECT next_not_cached_value FROM onceonly_fences)',
    // Transactions that grant a lease are ended by the server long before.
    inFlightMs: 3 * limits.storeCallMs,
    place: { column: 'id', type: 'id' },
    ofFences: `(JSON_TABLE(?, '$[*]' COLUMNS (n BIGINT PATH '$')) AS list
      STRAIGHT_JOIN onceonly_records AS r FORCE INDEX (onceonly_records_fence) ON r.fence = list.n) ON 1 = 1`,
    removeTallies: (list) => `DELETE t FROM ${list} STRAIGHT_JOIN onceonly_tallies AS t FORCE INDEX (bucket_at)
      ON t.bucket_at = x.bucket_at AND t.tenant = x.tenant AND t.caller = x.caller AND t.operation = x.operation`,
    byId: (id) => `r.id = ${id}`,
    stepRows: limits.scanRows,
    writeRows: limits.tallyRows,
    countsInSteps: false,
    read: (call, work) => calls.read(call, (connection) => work(connection.query)),
    scan: (call, work) =>
      calls.read(call, (connection) => {
        const bound = `SET STATEMENT max_statement_time = ${Math.ceil(call.timeoutMs / 1_000)} FOR `
        return work((text, values) => connection.query(bound + text, values))
      }),
    write: (call, work) => calls.write(call, (connection) => inTransaction(connection, () => work(connection.query))),
  }
}
