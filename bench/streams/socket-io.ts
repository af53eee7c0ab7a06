import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { loadPeer } from '../harness/peers.ts'
import { answer, mustEqual, readTask } from '../harness/program.ts'
import { openLink } from './link.ts'
import type { StreamsTask } from './task.ts'
import { WINDOW } from './task.ts'

/** What is used of the peer. */
interface Peer {
  readonly Server: new (
    server: object,
    options: object,
  ) => {
    on(
      event: 'connection',
      listen: (socket: { on(event: string, listen: (...args: never[]) => void): void }) => void,
    ): void
    close(): void
  }
}
interface PeerClient {
  io(url: string, options: object): { emit(event: string, ...args: unknown[]): void; close(): void }
}

const task = readTask<StreamsTask>()
const { Server } = await loadPeer<Peer>('socket.io')
const { io } = await loadPeer<PeerClient>('socket.io-client')
const folder = mkdtempSync(join(tmpdir(), 'onceonly-bench-'))
const database = new DatabaseSync(join(folder, 'peer.db'))
// As durable as ours, and deduplicated like ours: its own `retries` only sends again.
database.exec(
  'pragma journal_mode = wal; pragma synchronous = full; create table said (id integer primary key, body text)',
)
const keep = database.prepare('insert into said (id, body) values (?, ?) on conflict do nothing')
const server = createServer()
const sockets = new Server(server, { transports: ['websocket'] })
sockets.on('connection', (socket) => {
  socket.on('said', ((id: number, body: string, done: () => void) => {
    keep.run(id, body)
    done()
  }) as never)
})
await once(server.listen(0, '127.0.0.1'), 'listening')
const link = await openLink((server.address() as AddressInfo).port, task)
const client = io(`http://127.0.0.1:${link.port}`, {
  transports: ['websocket'],
  retries: 1_000,
  ackTimeout: 2_000 + 2 * task.roundTripMs,
  reconnectionDelay: 250,
})
const body = JSON.stringify({ text: 'A message of ordinary length, as people write them to each other.' })
let next = 0
const say = () => new Promise<void>((resolve) => client.emit('said', ++next, body, () => resolve()))
await say()
const untilMs = performance.now() + task.measureMs
const beganMs = performance.now()
let done = 0
async function caller(): Promise<void> {
  while (performance.now() < untilMs) {
    await say()
    done += 1
  }
}
await Promise.all(Array.from({ length: WINDOW }, caller))
const seconds = (performance.now() - beganMs) / 1_000
mustEqual('kept', Number(database.prepare('select count(*) as n from said').get()?.['n']), done + 1)
client.close()
sockets.close()
await link.stop()
database.close()
rmSync(folder, { recursive: true, force: true })
answer({ sendsPerS: done / seconds })
process.exit(0)
