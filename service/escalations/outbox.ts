import type { OutboxPort, SqlTx } from 'onceonly'

/** Keeps what a command publishes beside its other rows: committed with it, and never twice, because the id is its own. */
export const outboxRows: OutboxPort<SqlTx> = {
  async add(tx, { id, topic, key, body }) {
    await tx.query('insert into outbox_rows (id, topic, message_key, body) values (?, ?, ?, ?)', [
      id,
      topic,
      key ?? null,
      JSON.stringify(body),
    ])
  },
}
