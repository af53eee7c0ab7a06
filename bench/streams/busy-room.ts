import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sqliteStore } from 'onceonly/sqlite'
import type { ClientTransport, MessageIdentity, StreamReceiver } from 'onceonly/stream'
import { createStreamClient, createWebSocketTransport } from 'onceonly/stream'
import {
  createLocalExchange,
  createSocketServer,
  createSqlOrderLog,
  createSqlRoomLog,
  createStreamRegion,
} from 'onceonly/stream/server'
import { WebSocketServer } from 'ws'
import { answer, mustEqual, readTask } from '../harness/program.ts'
import type { BusyRoomTask } from './task.ts'

/**
 * What one reader of a busy room is sent, byte by byte, from its TCP connection: messages with their final places, and the
 * frame headers. In each round one person in each region writes at the same time as the others, and some of them reply.
 */
const { people, rounds, replies } = readTask<BusyRoomTask>()
const names = ['eu', 'us', 'ap', 'sa', 'af']
const folder = mkdtempSync(join(tmpdir(), 'onceonly-bench-'))
const store = sqliteStore(join(folder, 'streams.db'))
const exchange = createLocalExchange()
const order = createSqlOrderLog({ store })
const ends: (() => Promise<unknown>)[] = []

async function open(region: ReturnType<typeof createStreamRegion>) {
  const server = createServer()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const connections: Socket[] = []
  server.on('connection', (socket: Socket) => connections.push(socket))
  const sockets = createSocketServer({
    server,
    path: '/socket',
    WebSocketServer,
    admit: async () => ({ kind: 'admitted', who: null }),
    begin: (link) => region.connect(link),
  })
  ends.push(async () => {
    await sockets.stop()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { connections, transport: createWebSocketTransport({ url: () => `ws://127.0.0.1:${port}/socket` }) }
}

const regions = names.map((region) =>
  createStreamRegion({
    region,
    log: createSqlRoomLog({ store, region }),
    order,
    exchange: exchange.of(region),
    peers: names.filter((peer) => peer !== region),
    // Each message in a frame of its own, which takes the most.
    bounds: { deliverEntries: 1 },
  }),
)
const servers = await Promise.all(regions.map(open))
const [first] = regions
if (first === undefined) throw new Error('There is no region.')
const own = await open(first)
/** Frames that carry messages. */
let frames = 0
const counting: ClientTransport = {
  connect: (region, events) =>
    own.transport.connect(region, {
      ...events,
      received(data) {
        if (typeof data !== 'string' && (data[0] ?? 0) % 4 < 2) frames += 1
        events.received(data)
      },
    }),
}

let seen = 0
let bodies = 0
let places = 0
const reader = await enter(counting, names[0] ?? '', {
  message(entry) {
    seen += 1
    bodies += Buffer.byteLength(JSON.stringify(entry.body))
  },
  ordered: () => void (places += 1),
})
/** People, and the last messages that each of them has read. */
const writers = await Promise.all(
  Array.from({ length: people }, async (_, person) => {
    const region = person % names.length
    const read: MessageIdentity[] = []
    const message = (entry: MessageIdentity) => {
      if (read.push(entry) > 8) read.shift()
    }
    return { read, client: await enter(servers[region]?.transport ?? own.transport, names[region] ?? '', { message }) }
  }),
)

function enter(transport: ClientTransport, region: string, receiver: StreamReceiver) {
  return createStreamClient({ room: 'bench', regions: [region], transport, mode: 'at-least-once', receiver })
}

async function reached(count: () => number, wanted: number): Promise<void> {
  while (count() < wanted) await new Promise((resolve) => setTimeout(resolve, 2))
}

let written = 0
async function round(index: number): Promise<void> {
  await Promise.all(
    names.map(async (_, region) => {
      const writer = writers[(index * names.length + region) % people]
      if (writer === undefined) throw new Error('There is no writer.')
      const number = written++
      const target = number % 10 < replies * 10 ? writer.read[number % 7] : undefined
      const text = `Message ${number}, of ordinary length, as people write them.`
      const sent = await writer.client.send({ text }, target === undefined ? {} : { replyTo: target })
      await sent.accepted
    }),
  )
  await reached(() => seen, written)
}

/** Everybody has written: names were said once. */
const warmUp = Math.ceil(people / names.length)
for (let index = 0; index < warmUp; index++) await round(index)
await reached(() => places, written)
const [socket] = own.connections
const before = { bytes: socket?.bytesWritten ?? 0, bodies, frames, written }
for (let index = warmUp; index < warmUp + rounds; index++) await round(index)
await reached(() => places, written)
const messages = written - before.written
mustEqual('connections of the reader', own.connections.length, 1)
mustEqual('frames with a message each', frames - before.frames, messages)
const bytes = (socket?.bytesWritten ?? 0) - before.bytes - (bodies - before.bodies)
await Promise.all([reader, ...writers.map(({ client }) => client)].map((client) => client.stop()))
for (const end of ends) await end()
for (const region of regions) await region.stop()
await store.stop()
rmSync(folder, { recursive: true, force: true })
answer({ metadataBytes: bytes / messages })
