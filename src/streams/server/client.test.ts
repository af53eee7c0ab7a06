import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isOnceError } from '../../ledger/core/errors.ts'
import { until } from '../../testing/until.ts'
import { createStreamClient } from '../client/client.ts'
import type { StreamReceiver } from '../client/intake.ts'
import { createMemoryStorage } from '../client/memory-storage.ts'
import type { StreamClient } from '../client/options.ts'
import type { ClientStorage, ClientTransport, LinkEvents } from '../client/ports.ts'
import { createClientRuntime } from '../client/runtime.ts'
import { createMemoryRoomLog } from '../log/memory-log.ts'
import type { RoomLog } from '../ports.ts'
import type { ClientFrame, Entry, ServerFrame } from '../protocol/protocol.ts'
import { follow, openRegion } from './test-peer.ts'

function bodies(seen: readonly Entry[]): readonly unknown[] {
  return seen.map(({ body }) => body)
}

test('messages go round, replies name what they answer, and a cut connection loses nothing', async () => {
  const { region } = openRegion()
  const [ada, bob] = [await follow(region), await follow(region)]
  const asked = await ada.client.send('how are you?')
  assert.deepEqual(await asked.accepted, { log: 'eu.1', n: 1 })
  await until('bob sees it', () => bob.seen.length === 1)
  bob.transport.cut()
  const { accepted } = await bob.client.send('fine', { replyTo: asked.identity })
  await accepted
  await until('both see both', () => ada.seen.length === 2 && bob.seen.length === 2)
  assert.deepEqual(ada.seen[1]?.replyTo, asked.identity)
  assert.deepEqual(ada.seen[1]?.seen, { 'eu.1': 1 })
  assert.deepEqual(bodies(bob.seen), ['how are you?', 'fine'])
  await Promise.all([ada.client.stop(), bob.client.stop(), region.stop()])
  await assert.rejects(ada.client.send('too late'), (error) => isOnceError(error, 'stopped'))
})

test('a message that was written without a connection says when; one that leaves at once does not', async () => {
  const { region } = openRegion()
  const bob = await follow(region)
  const ada = await follow(region, { runtime: { ...createClientRuntime(), wallMs: () => 7.5 } })
  assert.equal(ada.client.status, 'connecting')
  await ada.client.send('early')
  await until('she is connected', () => ada.client.status === 'live')
  await ada.client.send('at once')
  await until('he sees both', () => bob.seen.length === 2)
  assert.deepEqual(
    bob.seen.map(({ body, writtenAtMs }) => [body, writtenAtMs]),
    [
      ['early', 7],
      ['at once', undefined],
    ],
  )
  await Promise.all([ada.client.stop(), bob.client.stop(), region.stop()])
})

test('large messages are sent as fast as a region takes them; what none would take is refused at once', async () => {
  const memory = createMemoryRoomLog({ region: 'eu', nowMs: () => performance.now() })
  const log: RoomLog = {
    ...memory,
    async write(room, batch) {
      await new Promise((resolve) => setTimeout(resolve, 2))
      return memory.write(room, batch)
    },
  }
  const { region } = openRegion({ log })
  const problems: unknown[] = []
  const ada = await follow(region, { onProblem: (error) => problems.push(error) })
  const sent = Array.from({ length: 40 }, async (_, index) => ada.client.send(`${index}${'x'.repeat(60_000)}`))
  await Promise.all((await Promise.all(sent)).map(({ accepted }) => accepted))
  assert.deepEqual(problems, [])
  for (const body of ['x'.repeat(70_000), '€'.repeat(25_000), undefined, 1n, '\ud800']) {
    await assert.rejects(ada.client.send(body), (error) => isOnceError(error, 'bad_input'))
  }
  const { identity, accepted } = await ada.client.send('still here')
  await accepted
  assert.equal(identity.cseq, 41)
  await Promise.all([ada.client.stop(), region.stop()])
})

test('a receiver may reconnect from inside, and sees nothing twice', async () => {
  const { region } = openRegion()
  const seen: unknown[] = []
  const follower: { client?: StreamClient } = {}
  const { client } = await follow(region, {
    receiver: {
      message({ body }) {
        seen.push(body)
        follower.client?.moveTo('eu')
      },
    },
  })
  follower.client = client
  const ada = await follow(region)
  for (let number = 1; number <= 5; number++) await (await ada.client.send(number)).accepted
  await until('all', () => seen.length >= 5)
  await (await ada.client.send('last')).accepted
  await until('last', () => seen.includes('last'))
  assert.deepEqual(seen, [1, 2, 3, 4, 5, 'last'])
  await Promise.all([client.stop(), ada.client.stop(), region.stop()])
})

test('a restart in the middle of an effect: again at least once, not again at most once, applied once effectively', async () => {
  for (const [mode, expected] of [
    ['at-least-once', ['a', 'b', 'b', 'c']],
    ['at-most-once', ['a', 'b', 'c']],
    ['effectively-once', ['a', 'b', 'b', 'c']],
  ] as const) {
    const { region } = openRegion()
    const ada = await follow(region)
    await (await ada.client.send('a')).accepted
    await (await ada.client.send('b')).accepted
    const storage = createMemoryStorage()
    const begun: unknown[] = []
    const done: unknown[] = []
    const receiver = (stuck: boolean) => ({
      async message({ body }: Entry) {
        begun.push(body)
        if (stuck && body === 'b') await new Promise(() => {})
        done.push(body)
      },
    })
    const dying = await follow(region, { mode, storage, receiver: receiver(true) })
    await until('in the middle of b', () => begun.includes('b'))
    dying.transport.cut()
    void dying.client.stop()
    const next = await follow(region, { mode, storage, receiver: receiver(false) })
    await (await ada.client.send('c')).accepted
    await until('c', () => done.includes('c'))
    assert.deepEqual([mode, begun], [mode, expected])
    assert.deepEqual([mode, done], [mode, mode === 'at-most-once' ? ['a', 'c'] : ['a', 'b', 'c']])
    await Promise.all([next.client.stop(), ada.client.stop(), region.stop()])
  }
})

test('pending messages survive a restart, with their numbers and what had been seen', async () => {
  const { region } = openRegion()
  const storage = createMemoryStorage()
  const nowhere: ClientTransport = { connect: () => ({ send() {}, close() {} }) }
  const before = await follow(region, { storage, transport: nowhere })
  const { identity } = await before.client.send('written offline')
  await before.client.stop()
  const after = await follow(region, { storage })
  await until('delivered', () => after.seen.length === 1)
  const { client, epoch, cseq } = after.seen[0] ?? {}
  assert.deepEqual({ client, epoch, cseq }, identity)
  await until('acknowledged', () => after.client.pending === 0)
  await Promise.all([after.client.stop(), region.stop()])
})

test('a cloned tab gets an identity of its own, and what it wrote arrives under that', async () => {
  const { region } = openRegion()
  const storage = createMemoryStorage()
  const original = await follow(region, { storage })
  await (await original.client.send('mine')).accepted
  const record = await storage.load()
  assert.ok(record !== null)
  // The clone has what the original had before its last connection: the same generation comes from two.
  const copied: ClientStorage = createMemoryStorage()
  await copied.identify({ ...record.identity, generation: record.identity.generation - 1 })
  const renewals: string[] = []
  const clone = await follow(region, { storage: copied, onIdentity: (_, why) => void renewals.push(why) })
  const { accepted } = await clone.client.send('from the clone')
  await accepted
  assert.deepEqual(renewals, ['cloned'])
  assert.notEqual(clone.client.identity.client, original.client.identity.client)
  await until('both clients have both messages', () => original.seen.length === 2 && clone.seen.length === 2)
  await Promise.all([original.client.stop(), clone.client.stop(), region.stop()])
})

test('an old copy of a storage takes a new identity at once, and sends nothing again that may have arrived', async () => {
  const { region, log } = openRegion()
  await log.enter('room', { client: 'ada', epoch: 1, generation: 5_000, instance: 'the later one' })
  const message = { client: 'numbers', epoch: 1, generation: 1, seen: {}, replyTo: null, body: 'x', digest: 'x' }
  await log.enter('room', { ...message, instance: 'the later one' })
  await log.write('room', { merged: [], sends: [1, 2, 3].map((cseq) => ({ ...message, cseq })) })
  for (const client of ['ada', 'numbers']) {
    const storage = createMemoryStorage()
    await storage.identify({ client, epoch: 1, generation: 3 })
    await storage.save({ number: 1, message: { seen: {}, replyTo: null, body: 'old' } })
    const events: unknown[] = []
    const copy = await follow(region, {
      storage,
      onIdentity: (_, why) => void events.push(why),
      onDoubt: (messages) => void events.push(...messages.map(({ body }) => body)),
    })
    await until('a new identity', () => copy.client.identity.client !== client && events.length === 2)
    assert.deepEqual(events, ['fenced', 'old'])
    await (await copy.client.send(`after ${client}`)).accepted
    await until('its own message', () => copy.seen.at(-1)?.body === `after ${client}`)
    assert.ok(!bodies(copy.seen).includes('old'))
    await copy.client.stop()
  }
  await region.stop()
})

test('forgotten messages are reported as in doubt, and never sent again by themselves', async () => {
  const { region } = openRegion()
  const storage = createMemoryStorage()
  await storage.identify({ client: 'sleeper', epoch: 1, generation: 9 })
  for (let number = 1; number <= 6; number++) {
    await storage.save({ number, message: { seen: {}, replyTo: null, body: `old ${number}` } })
  }
  await storage.remove(6, [])
  const doubts: unknown[] = []
  const { client, seen } = await follow(region, {
    storage,
    onDoubt: (messages) => void doubts.push(...messages.map(({ body }) => body)),
  })
  await until('a new epoch', () => client.identity.epoch === 2)
  assert.deepEqual(doubts, ['old 6'])
  const { identity, accepted } = await client.send('new')
  await accepted
  assert.deepEqual(identity, { client: 'sleeper', epoch: 2, cseq: 1 })
  await until('delivered', () => seen.length === 1)
  assert.deepEqual(bodies(seen), ['new'])
  await Promise.all([client.stop(), region.stop()])
})

test('an expired position starts over from a snapshot, and continues after it', async () => {
  const { region, log } = openRegion({ snapshot: async () => 'all of it' })
  const ada = await follow(region)
  for (let number = 1; number <= 5; number++) await (await ada.client.send(number)).accepted
  await log.trim('room', { olderThanMs: 1e9, mostEntries: 1, clientsMs: 1e9, publishedMs: 1e9, mostPublished: 1e6 })
  const resets: unknown[] = []
  const seen: unknown[] = []
  const late = await follow(region, {
    receiver: { message: ({ body }) => void seen.push(body), reset: (reset) => void resets.push(reset) },
  })
  await until('reset', () => resets.length === 1)
  assert.deepEqual(resets, [{ why: 'expired', snapshot: 'all of it' }])
  await (await ada.client.send('after')).accepted
  await until('after', () => seen.length === 1)
  assert.deepEqual(seen, ['after'])
  await Promise.all([late.client.stop(), ada.client.stop(), region.stop()])
})

test('without a snapshot all is shown that the room still has, and nothing twice', async () => {
  const { region, log } = openRegion()
  const ada = await follow(region)
  for (const body of [1, 2, 3]) await (await ada.client.send(body)).accepted
  const there = { client: 'bob', epoch: 1, seen: {}, after: null, replyTo: null, acceptedAtMs: 0 }
  const merged = [1, 2].map((n) => ({ ...there, log: 'us.1', n, cseq: n, body: `us ${n}`, digest: `${n}` }))
  await log.write('room', { merged, sends: [] })
  await log.trim('room', { olderThanMs: 1e9, mostEntries: 3, clientsMs: 1e9, publishedMs: 1e9, mostPublished: 1e6 })
  const resets: unknown[] = []
  const begin = async (logs: Record<string, number> | null) => {
    const seen: Entry[] = []
    const storage = createMemoryStorage()
    if (logs !== null) {
      await storage.identify({ client: 'mover', epoch: 1, generation: 1 })
      await storage.advance({ logs, ordered: 0 })
    }
    const receiver = {
      message: (entry: Entry) => void seen.push(entry),
      reset: (reset: unknown) => void resets.push(reset),
    }
    return { ...(await follow(region, { storage, from: 'start', receiver })), seen }
  }
  const [newcomer, mover] = [await begin(null), await begin({ 'us.1': 2 })]
  await (await ada.client.send(4)).accepted
  await until('the last', () => [newcomer, mover].every(({ seen }) => seen.at(-1)?.body === 4))
  assert.deepEqual(bodies(newcomer.seen), [3, 'us 1', 'us 2', 4])
  assert.deepEqual(bodies(mover.seen), [3, 4])
  assert.deepEqual(resets, Array(2).fill({ why: 'expired', snapshot: null }))
  await Promise.all([newcomer, mover, ada].map(({ client }) => client.stop()))
  await region.stop()
})

test('a client that begins at the head sees only later messages', async () => {
  const { region } = openRegion()
  const ada = await follow(region)
  await (await ada.client.send('before')).accepted
  const late = await follow(region, { from: 'head' })
  await until('live', () => late.client.status === 'live')
  await (await ada.client.send('after')).accepted
  await until('seen', () => late.seen.length > 0)
  assert.deepEqual(bodies(late.seen), ['after'])
  await Promise.all([late.client.stop(), ada.client.stop(), region.stop()])
})

test('a client that was cut is back after one short wait, and requests the rest with its hello', async () => {
  const waits: number[] = []
  const said: string[] = []
  const links: LinkEvents[] = []
  const client = await createStreamClient({
    room: 'room',
    regions: ['eu'],
    mode: 'at-least-once',
    receiver: { message() {} },
    transport: {
      connect(_, given) {
        links.push(given)
        setImmediate(() => given.opened())
        return { send: (text) => void said.push((JSON.parse(String(text)) as { kind: string }).kind), close() {} }
      },
    },
    bounds: { reconnectBaseMs: 40, reconnectCapMs: 1_000 },
    runtime: {
      ...createClientRuntime(),
      random: () => 1,
      setTimer(ms, fire, background) {
        if (background && ms <= 1_000) waits.push(ms)
        return createClientRuntime().setTimer(Math.min(ms, 1_000), fire, background)
      },
    },
  })
  for (const wait of [40, 80]) {
    await until('hello', () => said.length === 2)
    // Nothing has been heard yet.
    assert.deepEqual(said.splice(0), ['hello', 'resume'])
    links.at(-1)?.closed(null, 'cut')
    assert.equal(waits.at(-1), wait)
  }
  await client.stop()
})

const resumed = { kind: 'resumed', generation: 1, position: {}, ordered: 0, floor: 1, last: null, sent: 0 } as const

/** A client that has sent its resume, and gets the frames that the test sends. */
async function clientByHand(receiver: StreamReceiver) {
  const said: ClientFrame[] = []
  const links: LinkEvents[] = []
  const transport: ClientTransport = {
    connect(_region, events) {
      links.push(events)
      queueMicrotask(() => events.opened())
      return { send: (text) => void said.push(JSON.parse(String(text)) as ClientFrame), close() {} }
    },
  }
  const client = await createStreamClient({ room: 'room', regions: ['eu'], transport, mode: 'at-least-once', receiver })
  const hear = (frame: ServerFrame) => links.at(-1)?.received(JSON.stringify(frame))
  await until('hello and resume', () => said.length === 2)
  return { client, said, links, hear }
}

test('a client that resumes again on its connection sends nothing twice over it', async () => {
  const { client, said, links, hear } = await clientByHand({ message() {} })
  const kinds = () => said.map(({ kind }) => kind)
  hear(resumed)
  await client.send('one')
  const [place, identity] = [
    { log: 'eu.1', n: 2 },
    { client: 'bob', epoch: 1, cseq: 2 },
  ]
  const entry = { kind: 'copy', ...place, ...identity, seen: {} } as const
  hear({ kind: 'deliver', generation: 1, after: 0, entries: [entry] })
  hear(resumed)
  await client.send('two')
  assert.deepEqual(kinds(), ['hello', 'resume', 'send', 'resume', 'send'])
  links.at(-1)?.closed(null, 'cut')
  await until('another connection', () => said.length === 7)
  hear({ ...resumed, generation: 2 })
  await until('all of it again', () => said.length === 9)
  assert.deepEqual(kinds().slice(5), ['hello', 'resume', 'send', 'send'])
  await client.stop()
})

test('a copy that overtook its original is not taken: the original would be missing from the causes of others', async () => {
  const shown: number[] = []
  const { client, said, hear } = await clientByHand({ message: ({ cseq }) => void shown.push(cseq) })
  hear(resumed)
  const bob = { client: 'bob', epoch: 1, cseq: 1, seen: {} }
  const first = {
    kind: 'message',
    log: 'us.1',
    n: 1,
    ...bob,
    after: null,
    replyTo: null,
    body: 'x',
    acceptedAtMs: 1,
  } as const
  const copy = { kind: 'copy', log: 'eu.1', n: 1, ...bob } as const
  const effect = { ...first, log: 'eu.1', n: 2, client: 'ada', seen: { 'eu.1': 1 } }
  hear({ kind: 'deliver', generation: 1, after: 1, entries: [copy, effect] })
  hear({ kind: 'deliver', generation: 1, after: 0, entries: [first] })
  const asked = said.flatMap((frame) => (frame.kind === 'resume' ? [frame.position] : []))
  assert.deepEqual(asked, [{}, {}], 'it resumes from where it was')
  hear({ ...resumed, sent: 3 })
  hear({ kind: 'deliver', generation: 1, after: 3, entries: [first, copy, effect] })
  await until('both were shown', () => shown.length === 2)
  await client.stop()
})
