import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sqliteStore } from 'onceonly/sqlite'
import { createStreamClient, createWebSocketTransport } from 'onceonly/stream'
import { createSocketServer, createSqlRoomLog, createStreamRegion } from 'onceonly/stream/server'
import { WebSocketServer } from 'ws'
import { answer, mustEqual, readTask } from '../harness/program.ts'
import { openLink } from './link.ts'
import type { StreamsTask } from './task.ts'
import { WINDOW } from './task.ts'

const task = readTask<StreamsTask>()
const folder = mkdtempSync(join(tmpdir(), 'onceonly-bench-'))
const store = sqliteStore(join(folder, 'streams.db'))
const region = createStreamRegion({ region: 'eu', log: createSqlRoomLog({ store, region: 'eu' }) })
const server = createServer()
await once(server.listen(0, '127.0.0.1'), 'listening')
const sockets = createSocketServer({
  server,
  path: '/socket',
  WebSocketServer,
  admit: async () => ({ kind: 'admitted', who: null }),
  begin: (link) => region.connect(link),
})
const link = await openLink((server.address() as AddressInfo).port, task)
const numbers: number[] = []
const body = { text: 'A message of ordinary length, as people write them to each other.' }
const client = await createStreamClient({
  room: 'bench',
  regions: ['eu'],
  transport: createWebSocketTransport({ url: () => `ws://127.0.0.1:${link.port}/socket` }),
  mode: 'at-least-once',
  receiver: {
    message(entry) {
      numbers.push(entry.cseq)
    },
  },
})
await (await client.send(body)).accepted
const untilMs = performance.now() + task.measureMs
const beganMs = performance.now()
let sent = 1

/** As many callers as the window has places, each waiting for its own acknowledgement. */
async function caller(): Promise<void> {
  while (performance.now() < untilMs) {
    sent += 1
    await (await client.send(body)).accepted
  }
}
await Promise.all(Array.from({ length: WINDOW }, caller))
const seconds = (performance.now() - beganMs) / 1_000
while (numbers.length < sent) await new Promise((resolve) => setTimeout(resolve, 10))
mustEqual(
  'ordered, and each once',
  numbers.every((number, at) => number === at + 1),
  true,
)
await client.stop()
await link.stop()
await sockets.stop()
await region.stop()
server.close()
await store.stop()
rmSync(folder, { recursive: true, force: true })
const sendsPerS = (sent - 1) / seconds
answer({
  sendsPerS,
  ...(task.roundTripMs === 0 ? {} : { ofWindow: sendsPerS / (WINDOW / (task.roundTripMs / 1_000)) }),
})
