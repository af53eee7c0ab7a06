import { Redis } from 'ioredis'
import { createLedger } from 'onceonly'
import { redisStore } from 'onceonly/redis'
import { runOrders } from '../harness/ledger.ts'
import { createCpuMeter } from '../harness/process-cpu.ts'
import { answer, readTask } from '../harness/program.ts'
import type { RedisTask } from './task.ts'
import { mustHold, WARM_UP } from './task.ts'

const task = readTask<RedisTask>()
const client = new Redis(task.url)
const store = redisStore(client, { prefix: task.prefix })
const ledger = createLedger({ store })
const { requests, figures } = await runOrders(ledger, {
  ...task,
  ...WARM_UP,
  serverCpuMs: createCpuMeter(task.serverPid),
})
await ledger.stop()
await store.stop()
await mustHold(client, `{${task.prefix}:*}:r:*`, requests)
client.disconnect()
answer(figures)
