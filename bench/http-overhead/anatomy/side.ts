import { fork } from 'node:child_process'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import { createLedger, type Store } from 'onceonly'
import { memoryStore } from 'onceonly/memory'
import { postgresStore } from 'onceonly/postgres'
import { redisStore } from 'onceonly/redis'
import { sqliteStore } from 'onceonly/sqlite'
import { createFolder } from '../../harness/folder.ts'
import { receiptOf } from '../../harness/orders.ts'
import { createPool } from '../../harness/postgres.ts'
import { answer, mustEqual, readTask } from '../../harness/program.ts'
import { createApp } from '../apps.ts'
import { REPLAYED_KEYS } from '../task.ts'
import { type Counter, memory, objects, selfTimes, way } from './counters.ts'
import { type AnatomyTask, CALLERS, type Kept, type Round } from './task.ts'

/** The server, with its callers in a process of their own, so that nothing of theirs is counted. */
const task = readTask<AnatomyTask>()
using folder = createFolder()
const { store, close } = open(task.kept)
const ledger = store === null ? null : createLedger({ store, background: false })
let effects = 0
const server = await createApp(task.adapter, {
  ledger,
  place: async (order) => {
    effects++
    return receiptOf(order)
  },
  count: async () => ({ effects }),
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const { port } = server.address() as AddressInfo
const callers = fork(fileURLToPath(import.meta.resolve('./callers.ts')), [JSON.stringify({ port })])
callers.once('exit', (status) => {
  if (status !== 0) process.exit(1)
})
await once(callers, 'message')

const replayed = task.requests === 'replay' && ledger !== null
let sent = 0
async function send(count: number, round: Partial<Round> = {}): Promise<void> {
  callers.send({ from: sent, count, callers: CALLERS, replayed, ...round } satisfies Round)
  sent += count
  await once(callers, 'message')
}

async function count(counter: Counter, requests: number, round: Partial<Round> = {}) {
  return await counter(() => send(requests, round), requests)
}

if (replayed) await send(REPLAYED_KEYS, { replayed: false })
await send(task.count * 2)
const figures = { ...(await count(memory, task.count)) }
if (task.cpuOnly !== true) {
  Object.assign(figures, await count(selfTimes, task.count))
  Object.assign(figures, await count(objects, task.count / 10))
  Object.assign(figures, await count(way, 1, { callers: 1 }))
}
mustEqual('effects', effects, replayed ? REPLAYED_KEYS : sent)
callers.disconnect()
await once(callers, 'exit')
server.close()
server.closeAllConnections()
await ledger?.stop()
await store?.stop()
await close()
answer(figures)

function open(kept: Kept): { readonly store: Store | null; close(): Promise<unknown> } {
  const nothing = async () => undefined
  switch (kept.store) {
    case 'none':
      return { store: null, close: nothing }
    case 'memory':
      return { store: memoryStore(), close: nothing }
    case 'sqlite':
      return { store: sqliteStore(folder.file('a.db')), close: nothing }
    case 'postgres': {
      const pool = createPool({ url: kept.url, serverPid: null })
      return { store: postgresStore(pool), close: () => pool.end() }
    }
    case 'redis': {
      const client = new Redis(kept.url)
      return { store: redisStore(client), close: async () => client.disconnect() }
    }
  }
}
