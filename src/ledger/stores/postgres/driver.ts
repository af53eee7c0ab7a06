/**
 * The part of `pg` that the store borrows. `pg.Pool` fits it by shape, so that the package neither imports nor pins a
 * driver, and whatever speaks the protocol behind the same shape works too.
 */
export interface PgPool {
  connect(): Promise<PgClient>
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'connect', listener: (client: PgClient) => void): unknown
  readonly options?: { readonly max?: number | undefined } | undefined
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
