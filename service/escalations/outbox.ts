import type { OutboxPort, SqlTx } from 'onceonly'
import type { Base } from '../store.ts'

/** Keeps what a command publishes beside its other rows: committed with it, and never twice, because the id is its own. */
export function createOutboxRows({ now }: Base): OutboxPort<SqlTx> {
  return {
    async add(tx, { id, topic, key, body }) {
      await tx.query('insert into outbox_rows (id, topic, message_key, body, created_at) values (?, ?, ?, ?, ?)', [
        id,
        topic,
        key ?? null,
        JSON.stringify(body),
        new Date(await now()).toISOString(),
      ])
    },
  }
}
