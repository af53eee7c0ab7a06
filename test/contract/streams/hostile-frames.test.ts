import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { closeCodes, decodeServerFrame, type ServerFrame } from 'onceonly/stream/protocol'
import { decodeClientFrame } from 'onceonly/stream/server'
import { WebSocket } from 'ws'
import { until } from '../../../src/testing/until.ts'
import { openWorld, ROOM } from '../../support/streams/world.ts'

const world = await openWorld(['eu', 'us'])
after(() => world.end())

/** RFC 6455: the close code of `ws` for a frame that is too large. */
const TOO_LARGE = 1009
/** Stands for JSON that no `JSON.stringify` writes. */
const DEEP = '@deep@'
const inherited = ['constructor', '__proto__', 'toString', 'valueOf', 'hasOwnProperty', 'prototype']
const place = { log: 'eu.1', n: 1 }
const identity = { client: 'ann', epoch: 1, cseq: 1 }

const hello = { kind: 'hello', version: 1, room: ROOM, client: 'mal', epoch: 1, generation: 1, instance: 'i' }
const resume = { kind: 'resume', position: {}, ordered: 0, pendingFrom: 1, acknowledged: null, previousRegion: null }
const send = { kind: 'send', cseq: 1, seen: {}, replyTo: null, body: 'x' }
const clientFrames = [hello, resume, send, { ...send, channel: 1 }, { kind: 'credit', taken: 0 }, { kind: 'ping' }]
const head = { generation: 1, position: {}, ordered: 0, floor: 1, last: place }
const serverFrames = [
  { kind: 'welcome', version: 1, region: 'eu', generation: 1, position: {}, floor: 1, last: place },
  { kind: 'ack', floor: 2, ranges: [[1, 1]], results: [{ cseq: 1, place }] },
  { kind: 'nack', cseq: 1, why: 'fork' },
  { kind: 'deliver', generation: 1, after: 0, entries: [{ kind: 'copy', ...place, ...identity, seen: {} }] },
  { kind: 'order', generation: 1, after: 0, from: 1, identities: [identity] },
  { kind: 'resumed', ...head, sent: 0 },
  { kind: 'reset', ...head, why: 'expired', snapshot: null },
  { kind: 'lag', missing: {} },
  { kind: 'ended', channel: 1, code: 4403, reason: 'no' },
  { kind: 'pong' },
]

const names = fc.constantFrom(...inherited, 'eu.1', 'us.1', 'zz.9', 'x'.repeat(65), '', '../etc', 'a b', '\u0000')
const numbers = fc.constantFrom(0, -1, 1, 2, 1.5, 1e308, 2 ** 53, 2 ** 53 - 1, 2 ** 31)
const scalars = fc.oneof(names, numbers, fc.constantFrom(null, true, false, DEEP, '\ud800'))
const odd = fc.oneof(
  scalars,
  fc.array(scalars, { maxLength: 4 }),
  // Made of pairs, so that `__proto__` is a member like any other.
  fc.array(fc.tuple(names, scalars), { maxLength: 4 }).map((pairs) => Object.fromEntries(pairs)),
  fc.constantFrom({ ...identity, client: 'constructor' }, { log: 'constructor', n: 1 }, identity),
)

type Frame = Readonly<Record<string, unknown>>

/** A valid frame with some invalid members. */
function bent(frames: readonly Frame[]): fc.Arbitrary<string> {
  return fc
    .tuple(
      fc.constantFrom(...frames),
      fc.array(fc.tuple(fc.nat(20), odd), { maxLength: 3 }),
      fc.option(fc.tuple(names, odd)),
    )
    .map(([frame, changes, extra]) => {
      const members = Object.entries(frame)
      for (const [at, value] of changes) {
        const member = members[at % members.length]
        if (member !== undefined && at > 0) member[1] = value
      }
      return textOf(Object.fromEntries(extra === null ? members : [...members, extra]))
    })
}

function textOf(frame: unknown): string {
  const depth = 20_000
  return JSON.stringify(frame).replaceAll(`"${DEEP}"`, '['.repeat(depth) + ']'.repeat(depth))
}

const texts = fc.oneof(
  { weight: 8, arbitrary: bent(clientFrames) },
  { weight: 1, arbitrary: odd.map(textOf) },
  { weight: 1, arbitrary: fc.string({ maxLength: 50 }) },
)

test('whatever a frame is made of, it is read or refused', () => {
  fc.assert(
    fc.property(fc.oneof(texts, bent(serverFrames)), (text) => {
      for (const decoded of [decodeClientFrame(text), decodeServerFrame(text)]) {
        assert.ok(decoded.kind === 'frame' || decoded.reason.length < 124, text)
      }
    }),
    { numRuns: 400 },
  )
})

/** No order is that long: the answer to this resume is the answer to the last frame. */
const LAST = 1_000_003

/** Says all of it, and waits until the server has closed the connection, or has come to its end. */
async function attack(lines: readonly string[]): Promise<number | 'alive'> {
  const socket = new WebSocket(world.url('eu'), ['onceonly.v1+json'])
  const over = Promise.withResolvers<number | 'alive'>()
  socket.on('close', (code) => over.resolve(code))
  socket.on('error', over.reject)
  socket.on('message', (data) => {
    const frame = JSON.parse(String(data)) as ServerFrame
    if (frame.kind === 'ended') over.resolve(frame.code)
    if (frame.kind === 'resumed' && frame.ordered === LAST) over.resolve('alive')
  })
  socket.on('open', () => {
    for (const line of lines) socket.send(line)
    socket.send(textOf({ ...resume, ordered: LAST }))
  })
  const outcome = await over.promise
  socket.terminate()
  return outcome
}

test('hostile frames end their own session or do nothing; the room continues', async () => {
  const [ann, bob] = [await world.client(), await world.client({ regions: ['us'] })]
  // Never `unavailable`: that is the code for an unexpected error.
  const { badFrame, futurePosition, cloned, fenced } = closeCodes
  const known: ReadonlySet<unknown> = new Set(['alive', badFrame, futurePosition, cloned, fenced, TOO_LARGE])
  let count = 0
  await fc.assert(
    fc.asyncProperty(fc.boolean(), fc.array(texts, { minLength: 1, maxLength: 4 }), async (enters, lines) => {
      const preamble = [{ ...hello, client: `mal-${++count}` }, resume].map(textOf)
      const outcome = await attack(enters ? [...preamble, ...lines] : lines)
      assert.ok(known.has(outcome), `${String(outcome)}: ${lines.join('\n').slice(0, 2_000)}`)
      if (count % 20 > 0) return
      const before = bob.seen.length
      await ann.say(`still here after ${count}`)
      await until('bob gets a message of ann in the other region', () => bob.seen.length > before)
    }),
    { numRuns: 100 },
  )
  await bob.say('and I am here')
  await until('ann gets a message of bob', () => ann.seen.some(({ client }) => client === bob.client.identity.client))
  assert.deepEqual([ann.client.status, bob.client.status], ['live', 'live'])
  await until('the attackers are gone', () => world.node('eu').region.sessions === 1)
})

test('a client that claims to have seen an impossible position is disconnected, and delays no other client', async () => {
  const ann = await world.client()
  await ann.say('one')
  await until('it came back', () => ann.seen.length > 0)
  const log = ann.seen.at(-1)?.log ?? ''
  let count = 0
  const claim = (seen: Frame) =>
    attack([{ ...hello, client: `liar-${++count}` }, resume, { ...send, seen }].map(textOf))
  for (const name of ['constructor', 'zz.1', 'eu', 'valueOf']) {
    assert.equal(await claim({ [name]: 1 }), closeCodes.badFrame, name)
  }
  // What may still come is waited for, by this client alone.
  for (const name of [log, 'us.later']) assert.equal(await claim({ [name]: 1_000_000 }), 'alive')
  await ann.say('two')
})
