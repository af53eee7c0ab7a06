import { OnceError } from '../../core/errors.ts'
import { kindOf } from '../../core/option-names.ts'

/** The part of `mariadb` that the store borrows. A pool of `createPool` fits it by shape. */
export interface MariadbPool {
  getConnection(): Promise<MariadbConnection>
}

export interface MariadbConnection {
  query(query: MariadbQuery, values?: unknown[]): Promise<unknown>
  release(): Promise<void>
  /** Closes the socket now; the pool lends another connection. */
  destroy(): void
  on(event: 'error', listener: (error: Error) => void): unknown
  removeListener(event: 'error', listener: (error: Error) => void): unknown
}

export interface MariadbQuery {
  readonly sql: string
  /** Whole numbers arrive as numbers. */
  readonly bigIntAsNumber?: boolean
  readonly insertIdAsNumber?: boolean
  readonly rowsAsArray?: boolean
  readonly nestTables?: boolean
  readonly metaAsArray?: boolean
}

/** The likeliest mistakes of a first use, found where they are made and not at the first query. */
export function checkPool(pool: unknown): void {
  const has = (name: string) => typeof pool === 'object' && pool !== null && name in pool
  const wrong = (what: string, advice: string) =>
    new OnceError('bad_option', `mariadbStore needs a pool of \`mariadb\`, not ${what}. ${advice}`)
  if (typeof pool === 'string') throw wrong('a connection string', 'Pass `createPool(url)`.')
  if (has('beginTransaction') && !has('getConnection')) throw wrong('a single connection', 'Pass `createPool(…)`.')
  if (has('host') && !has('getConnection')) throw wrong('its settings', 'Pass `createPool(settings)`.')
  // Both kinds of its pools have it, and no pool of `mariadb`: their rows are of another shape.
  if (has('getConnection') && has('format')) throw wrong('a pool of `mysql2`', 'Pass `createPool(…)` of `mariadb`.')
  if (!has('getConnection')) throw wrong(kindOf(pool), 'Pass `createPool({ host, user, database })`.')
}
