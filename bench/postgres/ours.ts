import { createLedger } from 'onceonly'
import { postgresStore } from 'onceonly/postgres'
import { runOrders } from '../harness/ledger.ts'
import { createPool, serverCpu } from '../harness/postgres.ts'
import { answer, readTask } from '../harness/program.ts'
import type { PostgresTask } from './task.ts'
import { mustHold, WARM_UP } from './task.ts'

const task = readTask<PostgresTask>()
const pool = createPool(task)
const store = postgresStore(pool)
const ledger = createLedger({ store })
const { requests, figures } = await runOrders(ledger, { ...task, ...WARM_UP, serverCpuMs: serverCpu(task) })
await ledger.stop()
await store.stop()
await mustHold(pool, requests)
await pool.end()
answer(figures)
