import { createLedger } from 'onceonly'
import { createOutbox, createRelay } from 'onceonly/outbox'
import { postgresStore } from 'onceonly/postgres'
import { createPool } from '../harness/postgres.ts'
import { answer, mustEqual, readTask } from '../harness/program.ts'
import type { RelayTask } from './task.ts'
import { bodyOf, keyOf, openPublisher, TOPIC, timed } from './task.ts'

/** The relay, from a full outbox until it is empty. */
const task = readTask<RelayTask>()
const TRANSACTION = { timeoutMs: 60_000, lockMs: 60_000, refuseTwinOf: null }
const ROWS_PER_COMMIT = 100

const pool = createPool(task)
const store = postgresStore(pool)
const ledger = createLedger({ store, background: false })
const outbox = createOutbox({ ledger })
await outbox.prepare()
for (let from = 0; from < task.rows; from += ROWS_PER_COMMIT) {
  await store.transactions.run(async ({ tx }) => {
    for (let n = from; n < Math.min(from + ROWS_PER_COMMIT, task.rows); n++) {
      await outbox.add(tx, { topic: TOPIC, key: keyOf(n), body: bodyOf(n) })
    }
  }, TRANSACTION)
}
const { publisher, close } = await openPublisher(task)
const done = Promise.withResolvers<void>()
let published = 0
const figures = await timed(task.rows, async () => {
  const relay = createRelay({
    ledger,
    publisher,
    on(event) {
      if (event.kind !== 'published') return
      published += event.count
      if (published >= task.rows) done.resolve()
    },
  })
  await done.promise
  await relay.stop()
})
const { pending, deadLetters } = await outbox.status()
mustEqual('published', published, task.rows)
mustEqual('rows that are left', pending + deadLetters, 0)
await close()
await store.stop()
await pool.end()
answer(figures)
