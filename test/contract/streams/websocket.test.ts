import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ClientTransport } from 'onceonly/stream'
import { createMemoryStorage, createWebSocketTransport, identityText } from 'onceonly/stream'
import { until } from '../../../src/testing/until.ts'
import { openWorld, type StreamWorld, textsOf } from '../../support/streams/world.ts'

async function inWorld(names: readonly string[], body: (world: StreamWorld) => Promise<void>): Promise<void> {
  const world = await openWorld(names)
  try {
    await body(world)
  } finally {
    await world.end()
  }
}

test('a lost acknowledgement: the message is sent again, and stored once', () =>
  inWorld(['eu'], async (world) => {
    const [ann, bob] = [await world.client(), await world.client()]
    await ann.say('first')
    await until('both saw the first', () => ann.seen.length === 1 && bob.seen.length === 1)
    world.node('eu').proxy.cutResponses()
    await ann.say('second')
    await bob.say('third')
    await until('both saw all', () => ann.seen.length === 3 && bob.seen.length === 3)
    for (const each of [ann, bob]) assert.deepEqual(textsOf(each), ['first', 'second', 'third'])
    assert.equal(ann.client.pending, 0)
    await until('the final order', () => ann.order.length === 3)
    assert.deepEqual(ann.order, ann.seen.map(identityText))
  }))

test('connections that never received anything, that were quiet, and that broke twice in a row resume', () =>
  inWorld(['eu'], async (world) => {
    const { proxy } = world.node('eu')
    const ann = await world.client()
    await until('ann is in', () => ann.client.status === 'live')
    proxy.cut()
    const bob = await world.client()
    await bob.say('while she was away')
    await until('ann saw it', () => ann.seen.length === 1)
    proxy.cut()
    await until('ann is back', () => ann.client.status === 'live')
    proxy.cut()
    await until('both are back', () => ann.client.status === 'live' && bob.client.status === 'live')
    await bob.say('after two breaks')
    await until('ann saw both', () => ann.seen.length === 2)
    assert.deepEqual(textsOf(ann), ['while she was away', 'after two breaks'])
  }))

test('a receiver may continue in another region, in the middle of a message; nothing comes twice', () =>
  inWorld(['eu', 'us'], async (world) => {
    const bob = await world.client({ regions: ['us'] })
    let moves = 0
    const ann = await world.client({
      regions: ['eu', 'us'],
      receiver: {
        message() {
          moves += 1
          ann.client.moveTo(moves % 2 === 0 ? 'eu' : 'us')
        },
      },
    })
    for (let n = 1; n <= 6; n++) await bob.say(`message ${n}`)
    await until('ann saw all of it', () => ann.seen.length === 6)
    assert.deepEqual(textsOf(ann), ['message 1', 'message 2', 'message 3', 'message 4', 'message 5', 'message 6'])
    await ann.say('from where I am')
    await until('bob saw it', () => bob.seen.length === 7)
  }))

test('a client that was copied learns so, and continues under a new identity', () =>
  inWorld(['eu'], async (world) => {
    const storage = createMemoryStorage()
    const ann = await world.client({ storage })
    await ann.say('from the first tab')
    const record = await storage.load()
    assert.ok(record)
    const copied = createMemoryStorage()
    // What a duplicated tab has: the identity as it was before the connection that is open now.
    await copied.identify({ ...record.identity, generation: record.identity.generation - 1 })
    const clone = await world.client({ storage: copied })
    await clone.say('from the second tab')
    assert.deepEqual(clone.renewed, ['cloned'])
    assert.deepEqual(ann.renewed, [])
    assert.notEqual(clone.client.identity.client, ann.client.identity.client)
    await until('both saw both', () => ann.seen.length === 2 && clone.seen.length === 2)
  }))

/** What more than a hundred messages a second take, when an acknowledgement takes half a second. */
const IN_FLIGHT = 51

test('on a slow link more than 50 ordered messages are on their way before the first is acknowledged', () =>
  inWorld(['eu'], async (world) => {
    const real = createWebSocketTransport({ url: world.url, frames: 'json' })
    const slow = Promise.withResolvers<void>()
    let [isSlow, sent] = [false, 0]
    const transport: ClientTransport = {
      connect(region, events) {
        // Answers stay on the link until the test releases them; they keep their order.
        let arrived = Promise.resolve()
        const link = real.connect(region, {
          ...events,
          received(text) {
            const wait = isSlow ? slow.promise : undefined
            arrived = arrived.then(() => wait).then(() => events.received(text))
          },
        })
        return {
          ...link,
          send(text) {
            sent += (JSON.parse(String(text)) as { kind: string }).kind === 'send' ? 1 : 0
            link.send(text)
          },
        }
      },
    }
    const ann = await world.client({ transport })
    await ann.say('warm')
    isSlow = true
    sent = 0
    const count = 320
    const said = Array.from({ length: count }, (_, n) => ann.say(`message ${n}`))
    await until(
      `${IN_FLIGHT} messages are on their way`,
      () => sent,
      (seen) => seen >= IN_FLIGHT,
    )
    isSlow = false
    slow.resolve()
    await Promise.all(said)
    await until('she saw them all', () => ann.seen.length === count + 1)
    assert.deepEqual(
      textsOf(ann).slice(1),
      Array.from({ length: count }, (_, n) => `message ${n}`),
    )
  }))
