import { createPool } from '../harness/postgres.ts'
import { answer, mustEqual, readTask } from '../harness/program.ts'
import type { RelayTask } from './task.ts'
import { bodyOf, keyOf, openPublisher, TOPIC, timed } from './task.ts'

/** What one would write by hand: the oldest row, published, confirmed, removed; then the next. */
const task = readTask<RelayTask>()
const pool = createPool(task)
await pool.query(
  'CREATE TABLE outbox (id bigint PRIMARY KEY, topic text NOT NULL, key text NOT NULL, body text NOT NULL)',
)
const rows = Array.from({ length: task.rows }, (_, n) => ({
  id: n,
  topic: TOPIC,
  key: keyOf(n),
  body: JSON.stringify(bodyOf(n)),
}))
await pool.query(
  'INSERT INTO outbox SELECT * FROM json_to_recordset($1) AS r(id bigint, topic text, key text, body text)',
  [JSON.stringify(rows)],
)
const { publisher, close } = await openPublisher(task)
const client = await pool.connect()
let published = 0
const figures = await timed(task.rows, async () => {
  for (;;) {
    const next = await client.query<{ id: string; topic: string; key: string; body: string }>({
      name: 'next',
      text: 'SELECT id, topic, key, body FROM outbox ORDER BY id LIMIT 1',
    })
    const [row] = next.rows
    if (row === undefined) break
    const message = { ...row, sequence: null, headers: {} }
    const [answered] = await publisher.publish([message], { timeoutMs: 10_000 })
    mustEqual('the answer of the broker', answered?.kind, 'confirmed')
    await client.query({ name: 'mark', text: 'DELETE FROM outbox WHERE id = $1', values: [row.id] })
    published += 1
  }
})
mustEqual('published', published, task.rows)
client.release()
await close()
await pool.end()
answer(figures)
