import type { SqlRow } from '../store/sql.ts'

/** What is used of a transaction. */
export interface KnexSender {
  readonly isTransaction?: boolean
  isCompleted(): boolean
  readonly client: { acquireConnection(): Promise<KnexConnection> }
}

interface KnexConnection {
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
  return (await connection.query({ text, values: [...values] })).rows
}

/** Whether it is an open transaction of Knex. */
export function isKnexTransaction(handle: unknown): boolean {
  const given = handle as Partial<KnexSender> | null | undefined
  return given?.isTransaction === true && given.isCompleted?.() === false
}
