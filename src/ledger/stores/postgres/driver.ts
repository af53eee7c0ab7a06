import { OnceError } from '../../core/errors.ts'
import { kindOf } from '../../core/option-names.ts'

/**
 * The part of `pg` that the store borrows. `pg.Pool` fits it by shape, so that the package neither imports nor pins a
 * driver, and whatever speaks the protocol behind the same shape works too.
 */
export interface PgPool {
  connect(): Promise<PgClient>
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'connect', listener: (client: PgClient) => void): unknown
  readonly options?: { readonly max?: number | undefined } | undefined
  /** How many calls of `connect` and `query` wait for a client. */
  readonly waitingCount?: number
  /** How many clients there are. */
  readonly totalCount?: number
  /** How many of them are in no use. */
  readonly idleCount?: number
}

export interface PgClient {
  /** Several statements in one text, without values, answer an array of results. */
  query(query: PgQuery, values?: unknown[]): Promise<PgResult>
  /** With an error the pool closes the connection instead of lending it again. */
  release(error?: Error | boolean): void
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'notification', listener: (notification: PgNotification) => void): unknown
  removeListener(event: 'error', listener: (error: Error) => void): unknown
}

export interface PgQuery {
  /** A named statement is parsed and planned once per connection. */
  readonly name?: string
  readonly text: string
  readonly values?: unknown[]
  readonly types?: { getTypeParser(): (text: string) => unknown }
}

export interface PgResult {
  /** The word that the server answered: `COMMIT`, or `ROLLBACK` where nothing could be committed. */
  readonly command: string
  readonly rows: readonly unknown[]
}

export interface PgNotification {
  readonly channel: string
  readonly payload?: string | undefined
}

/** The likeliest mistakes of a first use, found where they are made and not at the first query. */
export function checkPool(pool: unknown): void {
  const has = (name: string) => typeof pool === 'object' && pool !== null && name in pool
  const wrong = (what: string, advice: string) =>
    new OnceError('bad_option', `postgresStore needs a \`Pool\` of \`pg\`, not ${what}. ${advice}`)
  if (typeof pool === 'string') throw wrong('a connection string', 'Pass `new Pool({ connectionString })`.')
  if (has('connectionParameters')) throw wrong('a single `Client`', 'Pass `new Pool(…)` with the same settings.')
  if (has('pool'))
    throw wrong('an object with one', 'Pass the pool itself, then the options: `postgresStore(pool, { schema })`.')
  if (has('connectionString') || has('host')) throw wrong('its settings', 'Pass `new Pool(settings)`.')
  if (!has('connect') || !has('on')) throw wrong(kindOf(pool), 'Pass `new Pool({ connectionString })`.')
}
