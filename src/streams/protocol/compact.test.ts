import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createRandom } from '../../testing/random.ts'
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
  fc.nat(100).map((n) => `pub~server~${n}`),
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

/** A room of a hundred people in five regions, each message in a frame of its own: each author has seen everything. */
function conversation(messages: number): ServerFrame[] {
  return busyRoom(messages, { lag: 0, replies: 0, moves: 0, server: 0 }).filter(({ kind }) => kind === 'deliver')
}

interface Habits {
  /** How many messages of each log, at most, an author has not seen that the reader has. */
  readonly lag: number
  /** Shares of the messages. */
  readonly replies: number
  readonly moves: number
  readonly server: number
}

/** What one reader is sent of it, with the final order behind the messages, as it was given: a few at a time. */
function busyRoom(messages: number, { lag, replies, moves, server }: Habits): ServerFrame[] {
  const random = createRandom(7)
  const heads: Record<string, number> = {}
  const people = Array.from({ length: 100 }, (_, person) => ({
    client: `0123456789abcdef0123456789ab${String(person).padStart(4, '0')}`,
    region: (person * 3) % 5,
    last: null as Entry | null,
  }))
  const recent: Entry[] = []
  const frames: ServerFrame[] = []
  const waiting: Entry[] = []
  let g = 0
  for (let index = 0; index < messages; index++) {
    const person = people[(index * 37) % 100]
    assert.ok(person !== undefined)
    if (random.chance(moves)) person.region = random.below(5)
    const log = `region-${person.region}.a1b2c3d4`
    const isServer = random.chance(server)
    const before = isServer ? null : person.last
    const seen = Object.fromEntries(
      Object.entries(heads).map(([name, n]) => {
        const own = before?.log === name ? before.n : 0
        return [name, Math.max(1, own, n - (name === log ? 0 : random.below(lag + 1)))]
      }),
    )
    const target = random.chance(replies) ? recent.at(-1 - random.below(20)) : undefined
    const entry: Entry = {
      log,
      n: (heads[log] ?? 0) + 1,
      client: isServer ? `pub~billing~${String(index).padStart(22, 'x')}` : person.client,
      epoch: 1,
      cseq: (before?.cseq ?? 0) + 1,
      seen,
      after: before === null ? null : { log: before.log, n: before.n },
      replyTo: target === undefined ? null : { client: target.client, epoch: target.epoch, cseq: target.cseq },
      acceptedAtMs: 1_760_000_000_000 + index * 900 + random.below(300),
      body: { text: 'A message of ordinary length, as people write them to each other.' },
    }
    heads[log] = entry.n
    if (!isServer) person.last = entry
    recent.push(entry)
    waiting.push(entry)
    frames.push({ kind: 'deliver', generation: 1, after: index, entries: [{ kind: 'message', ...entry }] })
    // Not always in the order in which this region merged them.
    if (waiting.length < 1 + random.below(4)) continue
    const placed = waiting.splice(0, waiting.length).sort(() => random.below(2) - 0.5)
    const identities = placed.map(({ client, epoch, cseq }) => ({ client, epoch, cseq }))
    frames.push({ kind: 'order', generation: 1, after: g, from: g + 1, identities })
    g += identities.length
  }
  return frames
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

/** What frames take beside the bodies, the WebSocket header included, for each message after the first hundred. */
function overhead(said: readonly ServerFrame[]): { readonly mean: number; readonly most: number } {
  const { client, server } = openPair([0])
  assert.equal(client.read(server.write(0, resumed)).kind, 'frame')
  let [messages, bytes, most] = [0, 0, 0]
  for (const frame of said) {
    const data = server.write(0, frame)
    assert.deepEqual(client.read(data), { kind: 'frame', channel: 0, frame })
    const entry = frame.kind === 'deliver' ? frame.entries[0] : undefined
    const body = entry?.kind === 'message' ? Buffer.byteLength(JSON.stringify(entry.body)) : 0
    // What WebSocket puts before it: two bytes, or four.
    const size = sizeOf(data) + (sizeOf(data) < 126 ? 2 : 4) - body
    if (entry !== undefined) messages += 1
    // Names are said once.
    if (messages <= 100) continue
    bytes += size
    if (entry !== undefined) most = Math.max(most, size)
  }
  return { mean: bytes / (messages - 100), most }
}

test('for a hundred people a message takes less than 20 bytes beside its body', () => {
  const { mean, most } = overhead(conversation(1_000))
  assert.ok(mean < 20 && most <= 20, `${mean}, at most ${most}`)
})

test('with authors who lag, replies, moves and the final order it takes at most 20 bytes, too', () => {
  const { mean } = overhead(busyRoom(2_000, { lag: 2, replies: 0.3, moves: 0.02, server: 0 }))
  assert.ok(mean <= 20, `${mean}`)
})

test('messages of servers take no numbers from people', () => {
  const { client, server } = openPair([0])
  client.read(server.write(0, resumed))
  const names = new Map<string, number>()
  for (const frame of busyRoom(2_000, { lag: 0, replies: 0, moves: 0, server: 0.75 })) {
    const data = server.write(0, frame)
    assert.deepEqual(client.read(data), { kind: 'frame', channel: 0, frame })
    assert.ok(typeof data !== 'string')
    for (const [name] of Buffer.from(data)
      .toString('latin1')
      .matchAll(/0123456789abcdef0123456789ab\d{4}/g)) {
      names.set(name, (names.get(name) ?? 0) + 1)
    }
  }
  assert.deepEqual(
    [...names.values()].filter((times) => times > 1),
    [],
  )
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
    ['a number past all bounds', [3, ...Array.from({ length: 12 }, () => 0xff)]],
    [
      'more names than a position has',
      [1, 65, ...Array.from({ length: 65 }, (_, n) => [2, 97 + (n % 26), 97 + n / 26]).flat()],
    ],
    ['a name with a slash', [2, 0, 1, 47]],
    ['an unknown person', [2, 9]],
    ['places that say not where', [3]],
  ] as const
  for (const [what, bytes] of most) assert.equal(client.read(Uint8Array.from(bytes)).kind, 'bad', what)
})

test('a server takes no bytes from a client', () => {
  const { server } = openPair([0])
  assert.equal(server.read(new Uint8Array([0, 1, 2])).kind, 'bad')
})
