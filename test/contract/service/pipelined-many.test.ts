import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { after, before, test } from 'node:test'
import { frontLimits } from '../../../src/http/front/limits.ts'
import { until } from '../../../src/testing/until.ts'
import { type Cluster, makeWorkspace, openCluster, type TestServer } from '../../support/service/cluster.ts'
import { speak } from '../../support/service/socket.ts'

const { pipelined } = frontLimits

let cluster: Cluster
let server: TestServer
before(async () => {
  cluster = await openCluster('sqlite')
  server = cluster.servers[0] as TestServer
})
after(() => cluster[Symbol.asyncDispose]())

/** One command after the other, each with a key and a recipient of its own. */
function sends(apiKey: string, count: number): string {
  const one = (n: number) => {
    const body = JSON.stringify({ recipientPhone: phone(n), message: `number ${n}` })
    const head = [
      'POST /api/messages HTTP/1.1',
      'Host: x',
      `Authorization: Bearer ${apiKey}`,
      'Content-Type: application/json',
      `Idempotency-Key: pipelined-${n}`,
      `Content-Length: ${body.length}`,
    ]
    return `${head.join('\r\n')}\r\n\r\n${body}`
  }
  return Array.from({ length: count }, (_, n) => one(n)).join('')
}

const phone = (n: number) => `+49151${String(2_000_000 + n)}`

const sent = async (workspace: string) =>
  (
    await cluster.sql<{ phone: string }>(
      `select recipient_phone as phone from messages where workspace_id = '${workspace}'`,
    )
  ).map((row) => row.phone)

test('as many commands as a connection may have at once are all answered, in their order', async (t) => {
  const apiKey = await makeWorkspace(server, 'few')
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
  t.after(() => socket.destroy())
  let received = ''
  socket.on('data', (chunk) => (received += String(chunk)))
  const answered = () => [...received.matchAll(/"recipientPhone":"(\+\d+)"/g)].map(([, found]) => found)
  socket.write(sends(apiKey, pipelined))
  await until('all are answered', () => answered().length === pipelined || socket.destroyed)
  assert.deepEqual(
    answered(),
    Array.from({ length: pipelined }, (_, n) => phone(n)),
  )
  assert.equal((await sent('few')).length, pipelined)
})

test('a connection with far more commands is cut, nothing of the others is begun, and others are served', async () => {
  const apiKey = await makeWorkspace(server, 'many')
  const own = await cluster.add()
  const { statuses } = await speak(own.url, { pieces: [sends(apiKey, 1_000)] })
  assert.ok(statuses.length <= pipelined)
  assert.equal((await own.send({ recipientPhone: phone(0), message: 'another client' })).status, 201)
  // Every command that was begun has its line of the access log, whether its client waited or not.
  const lines = () => own.events('http.access').filter(({ route }) => route === '/api/messages').length
  await until('they have ended', () => lines() >= pipelined + 1)
  assert.equal(lines(), pipelined + 1)
  const first = new Set(Array.from({ length: pipelined }, (_, n) => phone(n)))
  assert.deepEqual(
    (await sent('many')).filter((found) => !first.has(found)),
    [],
  )
})
