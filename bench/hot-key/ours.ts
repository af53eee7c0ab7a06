import { createLedger } from 'onceonly'
import { postgresStore } from 'onceonly/postgres'
import { drive } from '../harness/load.ts'
import { OPERATION, orderOf, partsOf, receiptOf } from '../harness/orders.ts'
import { createPool, serverCpu } from '../harness/postgres.ts'
import { answer, mustEqual, readTask } from '../harness/program.ts'
import type { PostgresTask } from '../postgres/task.ts'
import { arrival, checkReceipt, countStatements, HOT } from './requests.ts'

const task = readTask<PostgresTask>()
const pool = createPool(task)
const statements = countStatements(pool)
const store = postgresStore(pool)
const ledger = createLedger({ store })
const operation = ledger.operation({ name: OPERATION, effect: 'repeatable' })
let effects = 0
let replays = 0
ledger.on((event) => {
  if (event.kind === 'replayed') replays++
})

const order = orderOf(HOT)
const run = () =>
  operation.run(partsOf(HOT), order, () => {
    effects++
    return receiptOf(order)
  })
await run()
const before = { statements: statements(), atMs: performance.now() }
const { requests, figures } = await drive({
  ...task,
  serverCpuMs: serverCpu(task),
  request: async () => {
    await arrival()
    checkReceipt(await run())
  },
})
// Over the warm-up, too: what it takes to come into the cache belongs to the key.
const statementsPerS = (statements() - before.statements) / ((performance.now() - before.atMs) / 1_000)
mustEqual('effects', effects, 1)
mustEqual('replays', replays, requests)
await ledger.stop()
const { rows } = await pool.query<{ records: number; replays: number }>(
  'SELECT count(*)::int AS records, sum(replays)::int AS replays FROM onceonly_records',
)
mustEqual('records', rows[0]?.records, 1)
mustEqual('replays that were written down', rows[0]?.replays, requests)
await store.stop()
await pool.end()
answer({ ...figures, statementsPerS })
