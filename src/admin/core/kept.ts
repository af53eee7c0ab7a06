import type { SqlSeam } from '../../ledger/store/sql.ts'

/** How long something is kept, and what changes that. */
export interface RetentionRow {
  readonly what: string
  /** In words: `30 days after its end`. */
  readonly kept: string
  /** What changes it; null where it is fixed. */
  readonly setting: string | null
}

/** What the servers on a store keep in tables of their own: the last one that started wrote it down. */
export interface KeptRows {
  write(rows: readonly RetentionRow[]): Promise<void>
  read(): Promise<readonly RetentionRow[]>
}

/** For a store without a place for it. */
export const noKeptRows: KeptRows = { write: async () => {}, read: async () => [] }

/**
 * @param prepare brings the tables of `operateMigrations` up to date
 * @param isThere whether the tables exist: reading creates none
 */
export function createKeptRows(sql: SqlSeam, prepare: () => Promise<void>, isThere: () => Promise<boolean>): KeptRows {
  return {
    async write(rows) {
      await prepare()
      // Servers may start at once, each with rows of the same names.
      const names = rows.map(() => '?').join(', ')
      const text = `DELETE FROM onceonly_operator_retention WHERE what NOT IN (${names})`
      await sql.query(text, rows.map(({ what }) => what).toSorted())
      for (const [place, row] of rows.entries()) {
        await sql.query(
          `INSERT INTO onceonly_operator_retention (what, line) VALUES (?, ?)
           ON CONFLICT (what) DO UPDATE SET line = excluded.line`,
          [row.what, JSON.stringify({ place, ...row })],
        )
      }
    },
    async read() {
      if (!(await isThere())) return []
      const found = await sql.query<{ line: string }>('SELECT line FROM onceonly_operator_retention')
      const rows = found.map(({ line }) => JSON.parse(line) as RetentionRow & { readonly place: number })
      return rows
        .toSorted((one, other) => one.place - other.place)
        .map(({ what, kept, setting }) => ({ what, kept, setting }))
    },
  }
}
