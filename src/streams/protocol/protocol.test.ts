import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { streamLimits } from '../limits.ts'
import { decodeClientFrame, decodeServerFrame } from './decode.ts'
import type { ClientFrame, ServerFrame } from './protocol.ts'

const place = { log: 'eu.1', n: 3 }
const identity = { client: 'ada', epoch: 1, cseq: 2 }
const head = { generation: 4, position: { 'eu.1': 3 }, ordered: 2, floor: 1, last: place }

const clientFrames: readonly ClientFrame[] = [
  { kind: 'hello', version: 1, room: 'r', client: 'ada', epoch: 1, generation: 1, instance: 'i' },
  { kind: 'resume', position: { 'eu.1': 2 }, ordered: 0, pendingFrom: 1, acknowledged: place, previousRegion: 'eu' },
  { kind: 'resume', position: {}, ordered: 0, pendingFrom: 1, acknowledged: null, previousRegion: null },
  { kind: 'send', cseq: 1, seen: {}, replyTo: identity, body: { any: ['thing', null] } },
  { kind: 'credit', taken: 0 },
  { kind: 'ping' },
]

const serverFrames: readonly ServerFrame[] = [
  { kind: 'welcome', version: 1, region: 'eu', generation: 1, position: {}, floor: 1, last: null },
  { kind: 'ack', floor: 3, ranges: [[5, 6]], results: [{ cseq: 2, place }] },
  { kind: 'nack', cseq: 2, why: 'fork' },
  {
    kind: 'deliver',
    generation: 1,
    after: 3,
    entries: [
      { kind: 'message', ...place, ...identity, seen: {}, after: place, replyTo: null, body: null, acceptedAtMs: 7 },
      { kind: 'copy', ...place, ...identity, seen: { 'us.1': 1 } },
    ],
  },
  { kind: 'order', generation: 1, after: 0, from: 1, identities: [identity] },
  { kind: 'resumed', ...head, sent: 3 },
  { kind: 'reset', why: 'expired', ...head, snapshot: null },
  { kind: 'lag', missing: { 'us.1': 9 } },
  { kind: 'pong' },
]

test('every frame is read as it was written', () => {
  for (const frame of clientFrames) {
    assert.deepEqual(decodeClientFrame(JSON.stringify(frame)), { kind: 'frame', frame, channel: 0 })
  }
  for (const frame of serverFrames) {
    assert.deepEqual(decodeServerFrame(JSON.stringify(frame)), { kind: 'frame', frame, channel: 0 })
  }
})

test('a message may say when it was written, as a whole number', () => {
  const content = { seen: {}, replyTo: null, body: 'late', writtenAtMs: 1_700_000_000_000 }
  const sent: ClientFrame = { kind: 'send', cseq: 1, ...content }
  assert.deepEqual(decodeClientFrame(JSON.stringify(sent)), { kind: 'frame', frame: sent, channel: 0 })
  const entry = { kind: 'message', ...place, ...identity, ...content, after: null, acceptedAtMs: 7 } as const
  const delivered: ServerFrame = { kind: 'deliver', generation: 1, after: 0, entries: [entry] }
  assert.deepEqual(decodeServerFrame(JSON.stringify(delivered)), { kind: 'frame', frame: delivered, channel: 0 })
  for (const writtenAtMs of [-1, 0.5, '7', null]) {
    assert.equal(decodeClientFrame(JSON.stringify({ ...sent, writtenAtMs })).kind, 'bad')
  }
})

test('a frame that is cut off, or lacks a member, or has another type in its place, is none', () => {
  for (const [frames, decode] of [
    [clientFrames, decodeClientFrame],
    [serverFrames, decodeServerFrame],
  ] as const) {
    for (const frame of frames) {
      const text = JSON.stringify(frame)
      for (let cut = 0; cut < text.length; cut++) assert.equal(decode(text.slice(0, cut)).kind, 'bad')
      for (const member of Object.keys(frame)) {
        const { [member]: _, ...rest } = frame as unknown as Record<string, unknown>
        assert.equal(decode(JSON.stringify(rest)).kind, 'bad', `${frame.kind} without ${member}`)
        if (member === 'body' || member === 'snapshot') continue
        for (const wrong of [true, -1, 1.5, 1e300, 'a b', '__proto__', [[]], { a: -1 }, { __proto__x: {} }]) {
          const decoded = decode(JSON.stringify({ ...rest, [member]: wrong }))
          assert.equal(decoded.kind, 'bad', `${frame.kind} with ${member} ${JSON.stringify(wrong)}`)
        }
      }
    }
  }
})

test('what is too large, too long or too many is refused before it costs anything', () => {
  const send = { kind: 'send', cseq: 1, seen: {}, replyTo: null, body: 'x'.repeat(streamLimits.clientFrameBytes) }
  const large = decodeClientFrame(JSON.stringify(send))
  assert.ok(large.kind === 'bad' && large.tooLarge)
  const logs = Object.fromEntries(Array.from({ length: streamLimits.logs + 1 }, (_, index) => [`l${index}`, 1]))
  assert.equal(decodeClientFrame(JSON.stringify({ ...send, body: 1, seen: logs })).kind, 'bad')
  const long = 'x'.repeat(streamLimits.nameChars + 1)
  assert.equal(decodeClientFrame(JSON.stringify({ ...clientFrames[0], room: long })).kind, 'bad')
})

test('no text makes the decoder throw, and no name that it lets through is a trap', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.json(),
        fc.constantFrom('hello', 'send').map((kind) => `{"kind":"${kind}"}`),
      ),
      (text) => {
        decodeClientFrame(text)
        decodeServerFrame(text)
      },
    ),
    { numRuns: 2_000 },
  )
  const trap = decodeClientFrame('{"kind":"send","cseq":1,"seen":{"__proto__":5},"replyTo":null,"body":1}')
  assert.equal(trap.kind, 'bad')
})
