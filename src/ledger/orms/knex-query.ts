import type { SqlRow } from '../store/sql.ts'

/** What is used of a transaction. */
export interface KnexSender {
  readonly isTransaction?: boolean
  isCompleted(): boolean
  readonly client: { acquireConnection(): Promise<KnexConnection> }
}

/** Of `pg`, or of `better-sqlite3`. */
type KnexConnection = ServerConnection | FileConnection

interface FileConnection {
  prepare(text: string): {
    readonly reader: boolean
    all(...values: unknown[]): readonly SqlRow[]
    run(...values: unknown[]): unknown
  }
}

interface ServerConnection {
  query(query: { readonly text: string; readonly values: unknown[] }): Promise<{ readonly rows: readonly SqlRow[] }>
}

/**
 * On the driver's connection, so that `postProcessResponse` and `wrapIdentifier` touch neither our statements nor their
 * rows. A transaction that is complete has given its connection back.
 */
export async function queryByKnex(
  handle: KnexSender,
  text: string,
  values: readonly unknown[],
): Promise<readonly SqlRow[]> {
  if (handle.isCompleted()) throw new Error('The Knex transaction is complete.')
  const connection = await handle.client.acquireConnection()
  if ('query' in connection) return (await connection.query({ text, values: [...values] })).rows
  const statement = connection.prepare(text)
  if (statement.reader) return statement.all(...values)
  statement.run(...values)
  return []
}

/** Whether it is an open transaction of Knex. */
export function isKnexTransaction(handle: unknown): boolean {
  const given = handle as Partial<KnexSender> | null | undefined
  return given?.isTransaction === true && given.isCompleted?.() === false
}
