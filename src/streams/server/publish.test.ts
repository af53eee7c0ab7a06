import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OutgoingMessage } from '../../events/outbox/port.ts'
import { createRuntime, type Runtime } from '../../runtime/runtime.ts'
import { until } from '../../testing/until.ts'
import { createLocalExchange } from '../exchange/local.ts'
import { createMemoryRoomLog } from '../log/memory-log.ts'
import { closeCodes } from '../protocol/protocol.ts'
import { publisherOf } from '../protocol/published.ts'
import { createStreamRegion } from './region.ts'
import { createRoomPublisher } from './room-publisher.ts'
import { connectRaw, enter, follow, hello, openRegion } from './test-peer.ts'

const nowMs = () => performance.now()

test('a message of a server is stored once for its id, and is an ordinary message of the room', async () => {
  const { region } = openRegion()
  const { client, seen } = await follow(region)
  const first = await region.publish('room', { text: 'paid' }, { id: 'order-42', from: 'billing' })
  assert.deepEqual([first.place, first.duplicate], [{ log: 'eu.1', n: 1 }, false])
  const again = await region.publish('room', { text: 'paid' }, { id: 'order-42', from: 'billing' })
  assert.deepEqual(again, { ...first, duplicate: true })
  await until('it came', () => seen.length === 1)
  assert.deepEqual([seen[0]?.body, publisherOf(seen[0] ?? { client: '' })], [{ text: 'paid' }, 'billing'])
  const other = region.publish('room', { text: 'not paid' }, { id: 'order-42', from: 'billing' })
  await assert.rejects(other, { code: 'key_reused', applied: 'no' })
  const { accepted } = await client.send('thanks', { replyTo: first.identity })
  await accepted
  await client.stop()
  await region.stop()
})

test('published in two regions that are apart, a message is shown once, and its causes come first', async () => {
  let cut = true
  // A question into the cut is given up soon, because the test waits for the next one.
  const own = createRuntime()
  const runtime: Runtime = {
    ...own,
    setTimer: (ms, fire, background) => own.setTimer(Math.min(ms, 50), fire, background),
  }
  const exchange = createLocalExchange({ way: () => ({ cut, delayMs: 0 }), runtime })
  const [eu, us] = ['eu', 'us'].map((region) =>
    createStreamRegion({
      region,
      log: createMemoryRoomLog({ region, nowMs }),
      exchange: exchange.of(region),
      peers: ['eu', 'us'].filter((peer) => peer !== region),
      bounds: { pullEveryMs: 20, pullMs: 50, pullRetryCapMs: 50, publishMs: 100 },
    }),
  )
  assert.ok(eu && us)
  const reader = await follow(us)
  await eu.publish('room', 'question', { id: 'q' })
  const { place } = await eu.publish('room', 'answer', { id: 'a' })
  assert.deepEqual(place, { log: 'eu.1', n: 2 })
  await us.publish('room', 'answer', { id: 'a' })
  const seen = { 'eu.1': 2 }
  // The region lacks what must come first.
  const early = us.publish('room', 'thanks', { id: 't', seen })
  await assert.rejects(early, { code: 'retry_later', retryable: true, applied: 'maybe' })
  cut = false
  await eu.publish('room', 'a hint', { id: 'h' })
  const retried = () => us.publish('room', 'thanks', { id: 't', seen }).catch(() => null)
  assert.ok(await until('the region has caught up', retried))
  await until('all came', () => reader.seen.length === 4)
  assert.deepEqual(
    reader.seen.map(({ body }) => String(body)).toSorted((a, b) => a.localeCompare(b)),
    ['a hint', 'answer', 'question', 'thanks'],
  )
  assert.ok(reader.seen.findIndex(({ body }) => body === 'thanks') > 1)
  await reader.client.stop()
  for (const region of [eu, us]) await region.stop()
})

test('no client has the name of a server, and what cannot be published is refused before it is stored', async () => {
  const { region, log } = openRegion()
  const { identity } = await region.publish('room', 1, { id: 'one' })
  const liar = connectRaw(region)
  liar.say(hello(identity.client))
  assert.equal((await until('closed', () => liar.closed)).code, closeCodes.notAllowed)
  const refused = [
    region.publish('a room', 1, { id: 'x' }),
    region.publish('room', 'x'.repeat(70_000), { id: 'x' }),
    region.publish('room', 1, { id: '' }),
    region.publish('room', 1, { id: 'x', from: 'no name' }),
    region.publish('room', 1, { id: 'x', key: 'x' } as never),
    region.publish('room', 1, { id: 'x', timeoutMs: 0 }),
    region.publish('room', 1, { id: 'x', replyTo: { client: 'ada', epoch: 1, cseq: 1 } }),
  ]
  const codes = await Promise.all(refused.map((each) => each.catch((error: { code: string }) => error.code)))
  assert.deepEqual(codes, [
    'bad_input',
    'bad_input',
    ...Array.from({ length: 4 }, () => 'bad_option'),
    'target_unknown',
  ])
  assert.equal((await log.open('room')).at, 1)
  await region.stop()
  await assert.rejects(region.publish('room', 1, { id: 'late' }), { code: 'stopped' })
})

test('what an outbox hands over is said in rooms, in order, and the rest goes to the broker', async () => {
  const { region } = openRegion()
  const peer = await enter(region, 'ada')
  const passed: string[] = []
  const publisher = createRoomPublisher({
    region,
    otherwise: {
      name: 'broker',
      publish: async (messages) => messages.map(({ id }) => (passed.push(id), { kind: 'confirmed' })),
    },
  })
  const message = (id: string, topic: string, body: string): OutgoingMessage => {
    return { id, topic, key: 'k', sequence: null, body, headers: {} }
  }
  const batch = [
    message('1', 'room.room', '"one"'),
    message('2', 'mail', '"two"'),
    message('3', 'room.room', '"three"'),
  ]
  for (const _ of [1, 2]) {
    const answers = await publisher.publish(batch, { timeoutMs: 1_000 })
    assert.deepEqual(answers, [{ kind: 'confirmed' }, { kind: 'confirmed' }, { kind: 'confirmed' }])
  }
  assert.deepEqual(passed, ['2', '2'])
  const bodies = () => peer.frames.flatMap((frame) => (frame.kind === 'deliver' ? frame.entries : []))
  await until('both', () => bodies().length === 2)
  const forked = await publisher.publish([message('1', 'room.room', '"ONE"'), message('4', 'room.room', '4')], {
    timeoutMs: 1_000,
  })
  assert.deepEqual(
    forked.map(({ kind }) => kind),
    ['refused', 'unavailable'],
  )
  await region.stop()
})

test('a relay waits for a room no longer than it has time, and the other rooms keep their answers', async (context) => {
  const { region } = openRegion({ bounds: { publishMs: 60_000 } })
  context.after(() => region.stop())
  const publisher = createRoomPublisher({
    region: {
      publish: (room, body, options) =>
        region.publish(room, body, room === 'late' ? { ...options, seen: { 'eu.1': 9 } } : options),
    },
  })
  const message = (id: string, room: string): OutgoingMessage => {
    return { id, topic: `room.${room}`, key: null, sequence: null, body: '1', headers: {} }
  }
  const answers = await publisher.publish([message('1', 'late'), message('2', 'lobby')], { timeoutMs: 50 })
  assert.deepEqual(
    answers.map(({ kind }) => kind),
    ['unavailable', 'confirmed'],
  )
  assert.match(JSON.stringify(answers[0]), /within 40 ms/)
})
