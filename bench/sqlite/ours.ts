import { createLedger } from 'onceonly'
import { sqliteStore } from 'onceonly/sqlite'
import { runOrders } from '../harness/ledger.ts'
import { answer, readTask } from '../harness/program.ts'
import type { SqliteTask } from './task.ts'
import { mustHold, WARM_UP_OURS } from './task.ts'

const task = readTask<SqliteTask>()
const store = sqliteStore(task.path)
const ledger = createLedger({ store })
const warmUp = { warmUpRequests: WARM_UP_OURS, warmUpCallers: 64 }
const { requests, figures } = await runOrders(ledger, { ...task, ...warmUp })
await ledger.stop()
await store.stop()
mustHold(task.path, requests)
answer(figures)
