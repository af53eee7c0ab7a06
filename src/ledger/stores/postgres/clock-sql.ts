import type { Names } from './names.ts'

/**
 * The store's time in milliseconds: `clock_timestamp()`, because `now()` stands still inside a transaction, plus the offset
 * that tests keep in the store, so that every process on it sees the same time.
 *
 * The offset is a function that returns a constant: the server plans it into the statement, so that what only tests need
 * costs nothing (a row in a table cost every statement about 8 µs of 80). Moving the clock replaces the function, and the
 * server plans again, in every session, whatever was planned with it.
 */
export function nowSql(names: Names): string {
  return `(floor(date_part('epoch', clock_timestamp()) * 1000)::bigint + ${names.clockOffset})`
}

/**
 * The time at which the statement arrived, the same wherever the statement mentions it: a batch reads the clock once,
 * and a row's times fit together. Only for statements that need no lock before they may look at the clock.
 */
export function statementNowSql(names: Names): string {
  return `(floor(date_part('epoch', statement_timestamp()) * 1000)::bigint + ${names.clockOffset})`
}

/** STABLE, not IMMUTABLE: the server inlines it all the same, and remembers that the plan depends on it. */
export function clockOffsetFunction(names: Names, offsetMs: number): string {
  return `CREATE OR REPLACE FUNCTION ${names.clockOffset} RETURNS bigint
    LANGUAGE sql STABLE PARALLEL SAFE AS 'SELECT ${offsetMs}::bigint'`
}
