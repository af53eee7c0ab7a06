import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { after, before, type TestContext, test } from 'node:test'
import { until } from '../../../src/testing/until.ts'
import { type Cluster, makeWorkspace, openCluster, type TestServer } from '../../support/service/cluster.ts'

const MIB = 1_024 * 1_024

let cluster: Cluster
let server: TestServer
let quiet: string
before(async () => {
  // A busy machine takes long for so many connections; none of them is to be given up meanwhile.
  cluster = await openCluster('sqlite', { env: { ONCEONLY_REQUEST_TIMEOUT_MS: '600000' } })
  server = cluster.servers[0] as TestServer
  quiet = await makeWorkspace(server, 'quiet')
})
after(() => cluster[Symbol.asyncDispose]())

type FloodSocket = Socket & { received?: string }

/** Connections that declare a body of this length, send one byte of it, and then nothing more. */
function halfSent(t: TestContext, count: number, length: number): readonly FloodSocket[] {
  const head = [
    'POST /api/messages HTTP/1.1',
    'Host: x',
    `Authorization: Bearer ${server.apiKey}`,
    'Content-Type: application/json',
    `Content-Length: ${length}`,
  ].join('\r\n')
  const sockets = Array.from({ length: count }, () => {
    const socket: FloodSocket = connect(Number(new URL(server.url).port), '127.0.0.1')
    socket.on('error', () => {}).on('data', (data) => (socket.received = (socket.received ?? '') + String(data)))
    socket.write(`${head}\r\n\r\n{`)
    return socket
  })
  t.after(() => {
    for (const socket of sockets) socket.destroy()
  })
  return sockets
}

async function gauge(name: string): Promise<number> {
  const text = await (
    await fetch(`${server.url}/metrics`, { headers: { authorization: 'Bearer operator-token-of-tests' } })
  ).text()
  return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1] ?? Number.NaN)
}

const refusedOf = (sockets: readonly FloodSocket[]) =>
  sockets.filter(({ received }) => received?.startsWith('HTTP/1.1 503') === true)

/** Of one workspace, all at once, while another has taken what it can get: the answers that are no success. */
async function quietFailures(count: number, text: string): Promise<readonly number[]> {
  const sends = Array.from({ length: count }, (_, n) =>
    server.send({ recipientPhone: `+49151200${n}`, message: text }, { apiKey: quiet, key: `${text}-${n}` }),
  )
  return (await Promise.all(sends)).map(({ status }) => status).filter((status) => status !== 200 && status !== 201)
}

async function over(sockets: readonly FloodSocket[]): Promise<void> {
  for (const socket of sockets) socket.destroy()
  await until(
    'everything was given back',
    async () => (await gauge('onceonly_http_body_bytes')) + (await gauge('onceonly_http_requests_under_way')) === 0,
  )
}

test('150 half-sent bodies of 8 MiB take a quarter of the memory for bodies, and no other workspace waits', async (t) => {
  const sockets = halfSent(t, 150, 8 * MIB)
  const refused = () => refusedOf(sockets).length
  await until(
    'each is received or refused',
    async () => (await gauge('onceonly_http_requests_under_way')) + refused() === sockets.length,
  )
  const bytes = await gauge('onceonly_http_body_bytes')
  assert.equal(bytes, 64 * MIB)
  assert.equal(refused(), 150 - bytes / (8 * MIB))
  assert.match(
    refusedOf(sockets)[0]?.received ?? '',
    /retry-after: [1-5]\r.*"type":"\/problems\/overloaded".*"retryable":true/is,
  )
  assert.deepEqual(await quietFailures(20, 'bytes'), [])
  await over(sockets)
})

test('a workspace that takes all the places it can get costs another one nothing', async (t) => {
  const sockets = halfSent(t, 1_100, 100)
  const refused = () => refusedOf(sockets).length
  await until(
    'each is received or refused',
    async () => (await gauge('onceonly_http_requests_under_way')) + refused() === sockets.length,
  )
  assert.equal(refused(), 350, 'it has three quarters of the places')
  assert.deepEqual(await quietFailures(50, 'places'), [])
  await over(sockets)
  assert.equal((await server.send({ recipientPhone: '+4915130001', message: 'after the flood' })).status, 201)
})
