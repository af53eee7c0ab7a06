import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connect } from '@nats-io/transport-node'
import type { PullAnswer, RoomImage } from 'onceonly/stream/server'
import { createNatsExchange } from 'onceonly/stream/server'

const natsUrl = process.env['ONCEONLY_TEST_NATS_URL']
if (natsUrl === undefined && process.env['CI'] === 'true') throw new Error('ONCEONLY_TEST_NATS_URL is not set')
const skip = natsUrl === undefined ? 'no NATS server' : false

test('an image that is larger than a message of the server arrives whole', { skip, timeout: 30_000 }, async () => {
  const connections = await Promise.all([1, 2].map(() => connect({ servers: natsUrl as string })))
  const namespace = `images-${process.pid}`
  const [here, there] = connections.map((connection, index) =>
    createNatsExchange({ connection, region: index === 0 ? 'eu' : 'us', namespace }),
  )
  assert.ok(here !== undefined && there !== undefined)
  const client = (index: number) => `${'visitor-é'.repeat(4)}-${index}`
  const senders = (count: number): RoomImage['senders'] =>
    Array.from({ length: count }, (_, index) => ({
      client: client(index),
      epoch: 1,
      floor: index + 2,
      last: { log: 'us.1', n: index + 1 },
    }))
  let image: RoomImage = { position: { 'us.1': 30_000 }, senders: senders(30_000) }
  const answer = (): PullAnswer => ({ kind: 'expired', image })
  const serving = there.serve({
    pull: async () => answer(),
    fence: async () => assert.fail('nobody asked'),
    hinted: () => {},
  })
  await connections[1]?.flush()
  const request = { room: 'room', position: {}, all: false }
  assert.deepEqual(await Promise.all([here.pull('us', request), here.pull('us', request)]), [answer(), answer()])
  image = { position: { 'us.1': 1 }, senders: senders(1) }
  assert.deepEqual(await here.pull('us', request), answer())
  await serving.stop()
  await Promise.all(connections.map((connection) => connection.close()))
})
