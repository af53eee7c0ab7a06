import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createClientCodec, createServerCodec, type FrameData } from './codec.ts'
import { decodeServerFrame } from './decode.ts'
import type { ClientFrame, Delivered, Entry, ServerFrame } from './protocol.ts'

const hello: ClientFrame = {
  kind: 'hello',
  version: 1,
  room: 'room',
  client: 'me',
  epoch: 1,
  generation: 1,
  instance: 'i',
}

/** Both ends of a connection, with a session on each of these channels. */
function openPair(channels: readonly number[]) {
  const [client, server] = [createClientCodec('binary'), createServerCodec('binary')]
  for (const channel of channels) assert.equal(server.read(client.write(channel, hello)).kind, 'frame')
  return { client, server }
}

function sizeOf(data: FrameData): number {
  return typeof data === 'string' ? Buffer.byteLength(data) : data.length
}

/** Few, so that they are met again; names that objects have; and more than have a number. */
const logs = fc.oneof(
  fc.constantFrom('eu.1', 'us.1', 'constructor', 'valueOf'),
  fc.nat(80).map((n) => `log.${n}`),
)
const people = fc.oneof(
  fc.constantFrom('ada', 'bob', 'constructor'),
  fc.nat(400).map((n) => `p-${n}`),
)
const large = fc.oneof(
  { weight: 20, arbitrary: fc.nat(5) },
  { weight: 10, arbitrary: fc.nat(300) },
  { weight: 1, arbitrary: fc.maxSafeNat() },
)
const numbers = large.map((n) => Math.max(1, n))
const position = fc
  .array(fc.tuple(logs, numbers), { maxLength: 4 })
  .map((pairs): Record<string, number> => Object.fromEntries(pairs))
const place = fc.record({ log: logs, n: numbers })
const identity = fc.record({
  client: people,
  epoch: fc.oneof(
    { weight: 20, arbitrary: fc.constantFrom(1, 2) },
    { weight: 1, arbitrary: fc.constant(Number.MAX_SAFE_INTEGER) },
  ),
  cseq: numbers,
})
const body = fc.oneof(fc.jsonValue(), fc.constantFrom('', 'ü€😀', '\ud800', { text: 'x'.repeat(300) }))
const message = fc
  .record({
    content: fc.record({ seen: position, replyTo: fc.option(identity), body }),
    writtenAtMs: fc.option(large),
    who: identity,
    at: place,
    after: fc.option(place),
    acceptedAtMs: large,
  })
  .map(({ content, writtenAtMs, who, at, after, acceptedAtMs }): Delivered => {
    const entry: Entry = { ...who, ...at, ...content, after, acceptedAtMs }
    return { kind: 'message', ...entry, ...(writtenAtMs === null ? {} : { writtenAtMs }) }
  })
const copy = fc
  .tuple(place, identity, position)
  .map(([at, who, seen]): Delivered => ({ kind: 'copy', ...at, ...who, seen }))
const head = fc.record({ generation: numbers, position, ordered: large, floor: numbers, last: fc.option(place) })

const frames: fc.Arbitrary<ServerFrame> = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.tuple(head, large).map(([rest, sent]): ServerFrame => ({ kind: 'resumed', ...rest, sent })),
  },
  {
    weight: 8,
    arbitrary: fc
      .tuple(numbers, large, fc.array(fc.oneof(message, copy), { maxLength: 5 }))
      .map(([generation, after, entries]): ServerFrame => ({ kind: 'deliver', generation, after, entries })),
  },
  {
    weight: 4,
    arbitrary: fc
      .tuple(large, numbers, fc.array(identity, { maxLength: 5 }))
      .map(([after, from, identities]): ServerFrame => ({ kind: 'order', generation: 1, after, from, identities })),
  },
  fc
    .tuple(head, fc.jsonValue())
    .map(([rest, snapshot]): ServerFrame => ({ kind: 'reset', why: 'expired', ...rest, snapshot })),
  fc.constantFrom<ServerFrame>({ kind: 'pong' }, { kind: 'lag', missing: { 'eu.1': 1 } }),
)

/** What the frame would be at this moment if all before it had come: most frames are of this kind. */
function following(frame: ServerFrame, state: { generation: number; sent: number; ordered: number }): ServerFrame {
  if (frame.kind === 'deliver') return { ...frame, generation: state.generation, after: state.sent }
  if (frame.kind === 'order')
    return { ...frame, generation: state.generation, after: state.ordered, from: state.ordered + 1 }
  return frame
}

const story = fc.array(fc.tuple(frames, fc.constantFrom(0, 1, 40), fc.boolean()), { maxLength: 30 })

test('whatever a region says is read from bytes as it would be from JSON', () => {
  let compact = 0
  fc.assert(
    fc.property(story, (said) => {
      const { client, server } = openPair([0, 1, 40])
      for (const channel of [0, 1, 40]) client.read(server.write(channel, resumed))
      const states = new Map([0, 1, 40].map((channel) => [channel, { generation: 1, sent: 0, ordered: 0 }]))
      for (const [given, channel, follows] of said) {
        const state = states.get(channel)
        assert.ok(state !== undefined)
        const frame = follows ? following(given, state) : given
        if (frame.kind === 'resumed') Object.assign(state, frame)
        if (frame.kind === 'deliver') state.sent = frame.after + frame.entries.length
        if (frame.kind === 'order') state.ordered = frame.from + frame.identities.length - 1
        const data = server.write(channel, frame)
        if (typeof data !== 'string') compact += 1
        const json = decodeServerFrame(JSON.stringify(frame))
        assert.deepEqual(client.read(data), json.kind === 'frame' ? { ...json, channel } : json)
      }
    }),
    { numRuns: 300 },
  )
  assert.ok(compact > 200, `${compact} were bytes`)
})

/** A room of a hundred people in five regions, each message in a frame of its own. */
function conversation(messages: number): ServerFrame[] {
  const seen: Record<string, number> = {}
  const last = new Map<number, Entry>()
  return Array.from({ length: messages }, (_, index): ServerFrame => {
    const [person, region] = [(index * 37) % 100, (index * 3) % 5]
    const log = `region-${region}.a1b2c3d4`
    const before = last.get(person)
    const entry: Entry = {
      log,
      n: (seen[log] ?? 0) + 1,
      client: `0123456789abcdef0123456789ab${String(person).padStart(4, '0')}`,
      epoch: 1,
      cseq: (before?.cseq ?? 0) + 1,
      seen: { ...seen },
      after: before === undefined ? null : { log: before.log, n: before.n },
      replyTo: null,
      acceptedAtMs: 1_760_000_000_000 + index * 900,
      body: { text: 'A message of ordinary length, as people write them to each other.' },
    }
    seen[log] = entry.n
    last.set(person, entry)
    return { kind: 'deliver', generation: 1, after: index, entries: [{ kind: 'message', ...entry }] }
  })
}

const resumed: ServerFrame = {
  kind: 'resumed',
  generation: 1,
  position: {},
  ordered: 0,
  floor: 1,
  last: null,
  sent: 0,
}

test('for a hundred people a message takes less than 20 bytes beside its body', () => {
  const { client, server } = openPair([0])
  assert.equal(client.read(server.write(0, resumed)).kind, 'frame')
  const said = conversation(1_000)
  const sizes = said.map((frame) => {
    assert.ok(frame.kind === 'deliver')
    const data = server.write(0, frame)
    assert.deepEqual(client.read(data), { kind: 'frame', channel: 0, frame })
    const [entry] = frame.entries
    assert.ok(entry?.kind === 'message')
    // What WebSocket puts before it: two bytes, or four.
    const webSocket = sizeOf(data) < 126 ? 2 : 4
    return sizeOf(data) + webSocket - Buffer.byteLength(JSON.stringify(entry.body))
  })
  // Names are said once.
  const known = sizes.slice(100)
  const mean = known.reduce((sum, bytes) => sum + bytes, 0) / known.length
  assert.ok(mean < 20 && Math.max(...known) <= 20, `${mean}, at most ${Math.max(...known)}`)
})

test('a member that is newer than the compact form is not lost', () => {
  const { client, server } = openPair([0])
  client.read(server.write(0, resumed))
  const [frame] = conversation(1)
  assert.ok(frame?.kind === 'deliver')
  const newer = { ...frame, entries: [{ ...frame.entries[0], mood: 'good' } as unknown as Delivered] }
  const data = server.write(0, newer)
  assert.ok(typeof data === 'string' && data.includes('"mood":"good"'))
  assert.equal(client.read(data).kind, 'frame')
  // The next one follows it.
  const [, next] = conversation(2)
  assert.ok(next !== undefined)
  assert.equal(typeof server.write(0, next), 'object')
})

test('what comes for a session that is over is late, and no other session is confused by it', () => {
  const { client, server } = openPair([0, 1])
  const [first, second] = conversation(2)
  assert.ok(first !== undefined && second !== undefined)
  for (const channel of [0, 1]) client.read(server.write(channel, resumed))
  const late = server.write(0, first)
  client.write(0, { kind: 'leave' })
  assert.deepEqual(client.read(late), { kind: 'late' })
  assert.deepEqual(client.read(server.write(1, first)), { kind: 'frame', channel: 1, frame: first })
  const ended: ServerFrame = { kind: 'ended', code: 4410, reason: 'a newer one' }
  assert.deepEqual(client.read(server.write(1, ended)), { kind: 'frame', channel: 1, frame: ended })
  assert.deepEqual(client.read(new Uint8Array([4, 0, 0])), { kind: 'late' })
})

test('bytes that are no frame are refused with a short reason, and change nothing that objects have', () => {
  const said = conversation(12)
  const changes = fc.array(fc.tuple(fc.nat(200), fc.nat(255)), { maxLength: 6 })
  fc.assert(
    fc.property(changes, fc.nat(12), fc.nat(220), fc.uint8Array({ maxLength: 40 }), (changed, at, length, noise) => {
      const { client, server } = openPair([0])
      client.read(server.write(0, resumed))
      for (const [index, frame] of said.entries()) {
        const data = Uint8Array.from(server.write(0, frame) as Uint8Array)
        for (const [where, value] of index === at ? changed : []) data[where % data.length] = value
        const read = client.read(index === at ? data.subarray(0, length) : data)
        if (read.kind === 'bad') assert.ok(read.reason.length < 124)
      }
      const read = client.read(noise)
      assert.ok(read.kind !== 'bad' || read.reason.length < 124)
    }),
    { numRuns: 300 },
  )
  assert.equal(Object.keys(Object.prototype).length, 0)
  const { client, server } = openPair([0])
  client.read(server.write(0, resumed))
  const most = [
    ['a frame that is cut off', [0, 0]],
    ['a number past all bounds', [2, ...Array.from({ length: 12 }, () => 0xff)]],
    [
      'more names than a position has',
      [1, 65, ...Array.from({ length: 65 }, (_, n) => [2, 97 + (n % 26), 97 + n / 26]).flat()],
    ],
    ['a name with a slash', [2, 0, 0, 0, 1, 47]],
    ['an unknown person', [2, 0, 0, 9]],
    ['an unknown kind', [3]],
  ] as const
  for (const [what, bytes] of most) assert.equal(client.read(Uint8Array.from(bytes)).kind, 'bad', what)
})

test('a server takes no bytes from a client', () => {
  const { server } = openPair([0])
  assert.equal(server.read(new Uint8Array([0, 1, 2])).kind, 'bad')
})
