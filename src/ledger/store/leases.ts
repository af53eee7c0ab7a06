import type { QueryHow, SqlSeam, SqlTx, SqlValue } from './sql.ts'

/*
 * A lease gives a row to one process for a time. Three columns of the row say so: the holder, the fence, and the time from
 * which the row is free. The rules, for every table that has leases:
 *
 * 1. Time is the store's. A row is free once its time has come by the store's clock, and any process may take it then.
 * 2. Every take and every release changes the fence, and it only grows. A fence names one grant.
 * 3. Every write of a holder names its fence in the same statement or transaction. Ownership is the fence, never the time:
 *    a lease that lapsed, and that no process has taken since, can still be renewed and written under.
 * 4. The holder counts its lease from before it sent the request, by a clock that never jumps (`held-leases.ts`), so that
 *    it is over for the holder before it is over at the store.
 * 5. A take is one statement and takes a bounded number of rows. Processes that take at the same time pass over the rows
 *    that another one is taking.
 */

/** The columns of a table whose rows are leased. All of them are constants: they become part of the SQL. */
export interface LeaseTable<Key extends string = string> {
  readonly table: string
  /** Names one row. */
  readonly key: Key
  readonly keyType: 'text' | 'bigint'
  /** Where the columns are not those of `leaseColumns`. */
  readonly holder?: string
  readonly freeAt?: string
}

/** The columns of a lease. `free_at` is the end of a lease, or a time before which the row must not be taken. */
export function leaseColumns(text: string, integer: string): string {
  return `holder ${text}, fence ${integer} NOT NULL DEFAULT 0, free_at ${integer} NOT NULL DEFAULT 0`
}

/** One grant of one row. */
export type Lease<Key extends string = string> = Readonly<Record<Key, string | number>> & { readonly fence: number }

export interface TakeRule {
  /** Which of the free rows; may have values. */
  readonly which?: string
  readonly order: string
  /** Further changes of a row that is taken, without values. */
  readonly set?: string
  readonly returning: string
  /** What counts as free; left out, a row whose time has come. */
  readonly free?: string
  /**
   * For rows without an end of their own: they are held for as long as their holder is a member (`members.ts`). This stands
   * where others have their end.
   */
  readonly endless?: 'NULL' | number
}

export interface LeaseSql<Key extends string> {
  readonly key: Key
  /** The values: holder, lease in ms (unless endless), those of `free`, `which` and `order`, the most rows. */
  takeText(rule: TakeRule): string
  /**
   * Takes one row by its key, and makes it if there is none; for its holder a renewal, under the same fence while the
   * lease lasts. No row: another process holds it. The values: key, holder, lease in ms.
   */
  claimText(returning: string): string
  /** A condition on the table, with `listed` as its value: the row is still held under its fence. */
  readonly held: string
  listed(leases: readonly Lease<Key>[]): string
  /** Extends leases; answers the keys of those that are still held. */
  renew(leases: readonly Lease<Key>[], leaseMs: number): Promise<ReadonlySet<string | number>>
  /** Ends leases; the rows are free after the delay. */
  release(leases: readonly Lease<Key>[], how?: Release): Promise<void>
  /** Ends every lease of a holder, also one whose grant never reached it because the answer was lost. */
  releaseAll(holder: string): Promise<void>
  /** Locks the rows that are still held until the transaction ends, so that none is taken over meanwhile. */
  lock(tx: SqlTx, leases: readonly Lease<Key>[]): Promise<ReadonlySet<string | number>>
}

export interface Release {
  readonly delayMs?: number
  /** Further changes of a row, without values. */
  readonly set?: string
}

export function createLeaseSql<Key extends string>(
  { dialect, now: clock, query }: Pick<SqlSeam, 'dialect' | 'now' | 'query'>,
  { table, key, keyType, holder = 'holder', freeAt = 'free_at' }: LeaseTable<Key>,
): LeaseSql<Key> {
  // As a subquery it is one value for the whole statement, which an index can be asked for.
  const now = `(SELECT ${clock})`
  const held = `(${key}, fence) IN (SELECT x.${key}, x.fence FROM ${dialect.recordsOf({ [key]: keyType, fence: 'bigint' })})`
  const renew = `UPDATE ${table} SET ${freeAt} = ${now} + ? WHERE ${held} RETURNING ${key} AS key`
  const end = (set: string) => `UPDATE ${table} SET ${holder} = NULL, fence = fence + 1, ${freeAt} = ${now} + ?${set}`
  const lock = `UPDATE ${table} SET fence = fence WHERE ${held} RETURNING ${key} AS key`

  const listed = (leases: readonly Lease<Key>[]) =>
    JSON.stringify(leases.map((lease) => ({ [key]: lease[key], fence: lease.fence })))

  async function keysOf(tx: Pick<SqlSeam, 'query'>, text: string, values: readonly SqlValue[], how?: QueryHow) {
    const rows = await tx.query<{ key: string | number }>(text, values, how)
    // PostgreSQL answers a bigint as text.
    return new Set(rows.map((row) => (keyType === 'bigint' ? Number(row.key) : row.key)))
  }

  return {
    key,
    takeText({ which, order, set, returning, free = `${freeAt} <= ${now}`, endless }) {
      const skip = dialect.lock(`for update of ${table} skip locked`)
      const wanted = which === undefined ? '' : ` AND ${which}`
      const next = `SELECT ${key} FROM ${table} WHERE ${free}${wanted} ORDER BY ${order} LIMIT ? ${skip}`
      const change = `${holder} = ?, fence = fence + 1, ${freeAt} = ${endless ?? `${now} + ?`}`
      return `UPDATE ${table} SET ${change}${set === undefined ? '' : `, ${set}`}
        WHERE ${dialect.isAnyOf(key, next)} RETURNING ${returning}`
    },
    claimText: (
      returning,
    ) => `INSERT INTO ${table} AS t (${key}, ${holder}, fence, ${freeAt}) VALUES (?, ?, 1, ${clock} + ?)
      ON CONFLICT (${key}) DO UPDATE SET ${holder} = excluded.${holder}, ${freeAt} = excluded.${freeAt},
        fence = t.fence + CASE WHEN t.${holder} = excluded.${holder} AND t.${freeAt} > ${clock} THEN 0 ELSE 1 END
      WHERE t.${holder} = excluded.${holder} OR t.${freeAt} <= ${clock} RETURNING ${returning}`,
    held,
    listed,
    renew: (leases, leaseMs) => keysOf({ query }, renew, [leaseMs, listed(leases)], { quiet: true }),
    async release(leases, { delayMs = 0, set } = {}) {
      if (leases.length === 0) return
      await query(`${end(set === undefined ? '' : `, ${set}`)} WHERE ${held}`, [delayMs, listed(leases)])
    },
    async releaseAll(given) {
      await query(`${end('')} WHERE ${holder} = ?`, [0, given])
    },
    lock: (tx, leases) => keysOf(tx, lock, [listed(leases)]),
  }
}
