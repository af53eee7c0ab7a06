import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { frontLimits } from '../../../src/http/front/limits.ts'
import { until } from '../../../src/testing/until.ts'
import { openCounting, openGateway } from '../../support/gateway/world.ts'
import { raw } from './wire.ts'

const { pipelined } = frontLimits
const get = (path: string | number) => `GET /${path} HTTP/1.1\r\nHost: x\r\n\r\n`
const gets = (count: number) => Array.from({ length: count }, (_, n) => get(n)).join('')

test('as many requests as a connection may have at once are all answered, in their order', async (context) => {
  const upstream = await openCounting(context, (_request, response, { url }) => void response.end(`<${url}>`))
  const { port } = await openGateway(context, upstream.url)
  const socket = connect(port, '127.0.0.1')
  context.after(() => socket.destroy())
  let received = ''
  socket.on('data', (chunk) => (received += String(chunk)))
  const answers = () => [...received.matchAll(/<\/(\d+)>/g)].map(([, n]) => Number(n))
  const paths = Array.from({ length: pipelined }, (_, n) => n)
  for (let round = 1; round <= 3; round++) {
    // What was answered does not count any more.
    const count = round === 1 ? pipelined : pipelined / 2
    received = ''
    socket.write(gets(count))
    await until('all are answered', () => answers().length === count || socket.destroyed)
    assert.deepEqual(answers(), paths.slice(0, count))
  }
})

const HANDSHAKE = 'GET /socket HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'

for (const [what, bytes] of [
  ['far more requests', gets(10_000)],
  ['one request more, and a WebSocket', gets(pipelined + 1) + HANDSHAKE],
  [
    'one request more, and half a body',
    `${gets(pipelined + 1)}POST /half HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{`,
  ],
] as const) {
  test(`a connection with ${what} is cut, nothing beyond the bound is forwarded, and others are served`, async (context) => {
    const upstream = await openCounting(context, (request, response) => {
      if (request.url === '/other') response.end('served')
    })
    const world = await openGateway(context, upstream.url)
    // Where the gateway has not read everything, the end of the connection is a reset.
    await raw(world.port, bytes).catch(() => {})
    assert.equal((await world.ask({ method: 'GET', path: '/other' })).body, 'served')
    await until('nothing is under way', () => world.load.underWay + world.load.waiting === 0)
    const forwarded = upstream.seen.map(({ url }) => url).filter((url) => url !== '/other')
    assert.deepEqual(
      forwarded.filter((url) => !(Number(url.slice(1)) < pipelined)),
      [],
      'nothing beyond the bound was forwarded',
    )
    const cut = world.events.filter((event) => event.kind === 'access' && event.decision === 'overloaded')
    assert.deepEqual(
      cut.map((event) => event.kind === 'access' && [event.path, event.status]),
      [[`/${pipelined}`, null]],
    )
  })
}

test('a connection that keeps sending is cut while its first request is still under way', async (context) => {
  const upstream = await openCounting(context, () => {})
  const { port } = await openGateway(context, upstream.url)
  const socket = connect(port, '127.0.0.1').on('error', () => {})
  context.after(() => socket.destroy())
  socket.resume().write(get('first'))
  await until('it is under way', () => upstream.seen.length === 1)
  for (let n = 1; n < pipelined; n++) socket.write(get(n))
  await until('they are under way', () => upstream.seen.length === pipelined)
  assert.equal(socket.destroyed || socket.readableEnded, false)
  socket.write(get('past-the-bound'))
  await until('it is cut', () => socket.closed)
  assert.equal(upstream.heads, pipelined)
})
