import assert from 'node:assert/strict'
import { once as happened } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sqliteStore } from 'onceonly/sqlite'
import { createStreamConnection, createWebSocketTransport } from 'onceonly/stream'
import { createSocketServer, createSqlRoomLog, createStreamRegion } from 'onceonly/stream/server'
import { WebSocketServer } from 'ws'

const folder = mkdtempSync(join(tmpdir(), 'onceonly-example-'))
const store = sqliteStore(join(folder, 'rooms.db'))
const region = createStreamRegion({ region: 'eu', log: createSqlRoomLog({ store, region: 'eu' }) })

// Two tenants, each with rooms of the same names.
const tenants = new Map([
  ['secret-a', 'tenant-a'],
  ['secret-b', 'tenant-b'],
])
const server = createServer()
await happened(server.listen(0, '127.0.0.1'), 'listening')
const sockets = createSocketServer<string>({
  server,
  path: '/socket',
  WebSocketServer,
  async admit(_request, token) {
    const tenant = tenants.get(token ?? '')
    if (tenant === undefined) return { kind: 'refused', status: 401, reason: 'Unknown token.' }
    return { kind: 'admitted', who: tenant }
  },
  begin: (link, tenant) =>
    region.connect(link, {
      roomOf: (room) => `${tenant}.${room}`,
      authorize: ({ room }) => (room === 'board' ? 'The board is closed.' : null),
    }),
})
const address = server.address()
assert.ok(address !== null && typeof address === 'object')
const url = () => `ws://127.0.0.1:${address.port}/socket`

const shown: string[] = []
let bothCame: () => void = () => {}
const both = new Promise<void>((resolve) => {
  bothCame = resolve
})
const receiver = {
  message({ body }: { readonly body: unknown }) {
    if (shown.push(String(body)) === 2) bothCame()
  },
}
const transport = createWebSocketTransport({ url, token: () => 'secret-a' })

const connection = createStreamConnection({ regions: ['eu'], transport })
const lobby = await connection.room('lobby', { receiver, mode: 'at-least-once' })
const news = await connection.room('news', { receiver, mode: 'at-least-once' })
await lobby.send('Hello')
await news.send('It is raining.')

await both
assert.deepEqual(new Set(shown), new Set(['Hello', 'It is raining.']))
assert.equal(sockets.connections, 1)

// A refused room holds up no other.
let report: (problem: unknown) => void = () => {}
const refused = new Promise<unknown>((resolve) => {
  report = resolve
})
const board = await connection.room('board', { receiver, mode: 'at-least-once', onProblem: report })
await refused
assert.equal(board.refusal, 'The board is closed.')
await (await lobby.send('Still here')).accepted

// Leaves one room; the connection stays as long as it has another one.
await news.stop()
assert.deepEqual([...connection.rooms.keys()], ['lobby', 'board'])
console.log('two rooms on one connection, and a third that is refused')

await connection.stop()
await sockets.stop()
await region.stop()
server.close()
await store.stop()
rmSync(folder, { recursive: true })
