import assert from 'node:assert/strict'
import { EventEmitter, once as happened } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sqliteStore } from 'onceonly/sqlite'
import type { Entry } from 'onceonly/stream'
import { createStreamClient, createWebSocketTransport } from 'onceonly/stream'
import type { StreamRegion } from 'onceonly/stream/server'
import {
  createLocalExchange,
  createSocketServer,
  createSqlOrderLog,
  createSqlRoomLog,
  createStreamRegion,
} from 'onceonly/stream/server'
import { WebSocketServer } from 'ws'

const folder = mkdtempSync(join(tmpdir(), 'onceonly-example-'))
const store = sqliteStore(join(folder, 'rooms.db'))

// Two regions, each with a log of its own; the final order is in a store that both share. Here they are in one process,
// `createNatsExchange` joins them over a network.
const names = ['eu', 'us'] as const
const exchange = createLocalExchange()
const order = createSqlOrderLog({ store })
const regions = names.map((region) =>
  createStreamRegion({
    region,
    log: createSqlRoomLog({ store, region }),
    order,
    exchange: exchange.of(region),
    peers: names.filter((peer) => peer !== region),
  }),
)

// Your HTTP server, your authentication; the class is that of `ws`.
const server = createServer()
await happened(server.listen(0, '127.0.0.1'), 'listening')
const sockets = createSocketServer<StreamRegion>({
  server,
  path: '/socket',
  WebSocketServer,
  async admit(request, token) {
    if (token !== 'secret') return { kind: 'refused', status: 401, reason: 'Unknown token.' }
    const region = regions.find((_, index) => request.url?.endsWith(`=${names[index]}`))
    if (region === undefined) return { kind: 'refused', status: 404, reason: 'Unknown region.' }
    return { kind: 'admitted', who: region }
  },
  begin: (link, region) => region.connect(link),
})
const port = portOf(server)

// The same client runs in browsers, where `createIndexedDbStorage` keeps what is pending over a reload.
async function enter(...inOrder: readonly string[]) {
  const shown: Entry[] = []
  const arrivals = new EventEmitter()
  const [first, four] = [happened(arrivals, '1'), happened(arrivals, '4')]
  const client = await createStreamClient({
    room: 'lobby',
    regions: inOrder,
    mode: 'effectively-once',
    from: 'start',
    transport: createWebSocketTransport({
      url: (name) => `ws://127.0.0.1:${port}/socket?region=${name}`,
      token: () => 'secret',
    }),
    receiver: {
      message(entry) {
        arrivals.emit(String(shown.push(entry)))
      },
    },
  })
  return { client, shown, first, four }
}
const [ann, bob] = [await enter('eu', 'us'), await enter('us', 'eu')]

const question = await ann.client.send('Is it raining?')
// Durable in Ann's region: neither a lost connection nor a crash can undo it.
await question.accepted
// A reply names a message that was received here, or sent.
await bob.first
const [asked] = bob.shown
assert.ok(asked !== undefined)
// Two replies at once, one of them after a move to the other region. No client sees a reply before the question.
ann.client.moveTo('us')
await Promise.all([
  ann.client.send('Here it is.', { replyTo: question.identity }),
  bob.client.send('Not here.', { replyTo: asked }),
  bob.client.send('Why do you ask?', { replyTo: asked }),
])

for (const { shown, four } of [ann, bob]) {
  await four
  const texts = shown.map(({ body }) => body)
  assert.equal(texts[0], 'Is it raining?')
  assert.deepEqual(new Set(texts), new Set(['Is it raining?', 'Here it is.', 'Not here.', 'Why do you ask?']))
  // Bob's two keep their order, whatever stands between them.
  assert.ok(texts.indexOf('Not here.') < texts.indexOf('Why do you ask?'))
}
console.log('four messages, two regions, each client saw each of them once, after its causes')

await ann.client.stop()
await bob.client.stop()
await sockets.stop()
for (const region of regions) await region.stop()
server.close()
await store.stop()
rmSync(folder, { recursive: true })

function portOf(listening: Server): number {
  const address = listening.address()
  assert.ok(address !== null && typeof address === 'object')
  return address.port
}
