import type { SqlTx, TransactionalStore } from 'onceonly'
import type { HttpGround } from 'onceonly/testing'

/** An SQL store with a business table beside it. */
export async function groundOf(store: TransactionalStore<SqlTx>, close: () => Promise<void>): Promise<HttpGround> {
  const { sql } = store
  if (sql === undefined) throw new Error('an SQL store has an SQL seam')
  await sql.query('create table if not exists business (id text primary key)')
  return {
    store: store as TransactionalStore<unknown>,
    write: async (tx, row) => void (await (tx as SqlTx).query('insert into business (id) values (?)', [row])),
    written: async () => (await sql.query<{ id: string }>('select id from business')).map(({ id }) => id),
    close,
  }
}
