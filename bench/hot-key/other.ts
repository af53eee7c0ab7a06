import { createLedger } from 'onceonly'
import { postgresStore } from 'onceonly/postgres'
import { drive } from '../harness/load.ts'
import { OPERATION, orderOf, partsOf, receiptOf } from '../harness/orders.ts'
import { createPool, serverCpu } from '../harness/postgres.ts'
import { answer, mustEqual, readTask } from '../harness/program.ts'
import type { PostgresTask } from '../postgres/task.ts'
import { arrival, checkReceipt, HOT } from './requests.ts'

/** The least that a handler without a cache can do: one prepared SELECT by the primary key. */
const task = readTask<PostgresTask>()
const pool = createPool(task)
const store = postgresStore(pool)
const ledger = createLedger({ store, background: false })
const operation = ledger.operation({ name: OPERATION, effect: 'repeatable' })
await operation.run(partsOf(HOT), orderOf(HOT), () => receiptOf(orderOf(HOT)))
await ledger.stop()
await store.stop()
const { rows } = await pool.query<{ id: string }>('SELECT id FROM onceonly_records')
const id = rows[0]?.id
await pool.query('VACUUM ANALYZE onceonly_records')

const text = 'SELECT state, fingerprint, expires_at, outcome FROM onceonly_records WHERE id = $1'
let answers = 0
const { requests, figures } = await drive({
  ...task,
  serverCpuMs: serverCpu(task),
  request: async () => {
    await arrival()
    const found = await pool.query<{ outcome: string }>({ name: 'replay', text, values: [id] })
    checkReceipt(JSON.parse(found.rows[0]?.outcome ?? '{}'))
    answers++
  },
})
mustEqual('answers', answers, requests)
await pool.end()
answer(figures)
