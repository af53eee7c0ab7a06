import { Agent, request as httpRequest } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { createStreamClient, createWebSocketTransport } from 'onceonly/stream'
import type { Flood } from './flood.ts'

/** A process of its own, so that the one that measures is not held up by it. It floods until its parent is gone. */

const { port, path, token, rate, rooms, slow, halfSent, halfSentBytes }: Flood = JSON.parse(process.argv[2] ?? '{}')
const host = '127.0.0.1'
const EVERY_MS = 5
/** More answers are not waited for at once: then less is sent. */
const OPEN_MOST = 4_000
const CONNECTIONS_MOST = 512
/** A connection that was cut is opened again, as an attacker would. */
const AGAIN_MS = 500

const counts: Record<string, number> = {}
const count = (what: string) => void (counts[what] = (counts[what] ?? 0) + 1)
setInterval(() => process.send?.(counts), 500)
// Its parent is gone when no message can be sent to it any more.
process.on('error', () => process.exit(0)).once('disconnect', () => process.exit(0))

const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS_MOST })
let open = 0
let sent = 0

function send(): void {
  if (open >= OPEN_MOST) return count('requests not sent')
  open++
  const n = sent++
  const body = JSON.stringify({ recipientPhone: `+4917${n % 10_000_000}`, message: `flood ${n}` })
  const headers = {
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
    'content-length': body.length,
    'idempotency-key': `flood-${n}`,
  }
  const request = httpRequest({ host, port, path, method: 'POST', agent, headers })
  request.on('response', (answer) => {
    count(`requests answered ${answer.statusCode}`)
    answer.resume()
  })
  request.on('error', () => count('requests cut'))
  request.once('close', () => open--)
  request.end(body)
}

let dueMs = performance.now()
setInterval(() => {
  for (let now = performance.now(); dueMs < now; dueMs += 1_000 / rate) send()
}, EVERY_MS)

const head = (length: number) =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nIdempotency-Key: half\r\nContent-Length: ${length}\r\n\r\n`

/** Holds one connection open. */
async function hold(what: string, begin: (socket: Socket) => void): Promise<never> {
  for (;;) {
    const socket = connect(port, host)
    let status = 'cut'
    socket.on('error', () => {}).on('data', (data) => (status = /^HTTP\/1.1 (\d+)/.exec(String(data))?.[1] ?? status))
    begin(socket)
    await new Promise((resolve) => void socket.once('close', resolve))
    count(`${what} ended: ${status}`)
    await sleep(AGAIN_MS)
  }
}

for (let n = 0; n < slow; n++) {
  // Half of them never end their heads, the others their bodies.
  void hold('slow connections', (socket) => {
    const bytes = n % 2 === 0 ? `GET /${'x'.repeat(n)} HTTP/1.1\r\nHost: x\r\n` : `${head(1_000)}{`
    socket.write(bytes)
    const timer = setInterval(() => socket.write('x'), 5_000)
    socket.once('close', () => clearInterval(timer))
  })
}
const half = Buffer.alloc(halfSentBytes / 2, 'x')
for (let n = 0; n < halfSent; n++) {
  void hold('half-sent bodies', (socket) => {
    socket.write(head(halfSentBytes))
    socket.write(half)
  })
}
for (let n = 0; n < rooms; n++) {
  const url = () => `ws://${host}:${port}/chat/socket?region=frankfurt`
  const transport = createWebSocketTransport({ url, token: () => token })
  const receiver = { message() {}, ordered() {}, reset() {} }
  void createStreamClient({
    room: `flood-${n}`,
    regions: ['frankfurt'],
    transport,
    mode: 'at-least-once',
    from: 'start',
    receiver,
  })
    .then(async (client) => {
      await client.send({ n })
      count('rooms joined')
    })
    .catch(() => count('rooms refused'))
}
