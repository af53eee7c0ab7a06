import assert from 'node:assert/strict'
import fc from 'fast-check'
import { decodeServerFrame } from 'onceonly/stream/protocol'
import { decodeClientFrame } from 'onceonly/stream/server'
import { assertUnpolluted, oddObject } from './odd-names.ts'

const place = '{"log":"eu.1","n":1}'
const identity = '{"client":"ann","epoch":1,"cseq":1}'

/** Frames of both sides, as text: what is thrown is text, too. */
const good = [
  '{"kind":"hello","version":1,"room":"r","client":"ann","epoch":1,"generation":1,"instance":"i"}',
  `{"kind":"resume","position":{"eu.1":1},"ordered":0,"pendingFrom":1,"acknowledged":${place},"previousRegion":null}`,
  '{"kind":"send","cseq":1,"seen":{"eu.1":1},"replyTo":null,"body":"x"}',
  '{"kind":"credit","taken":0}',
  '{"kind":"ping"}',
  `{"kind":"ack","floor":2,"ranges":[[1,1]],"results":[{"cseq":1,"place":${place}}]}`,
  '{"kind":"nack","cseq":1,"why":"fork"}',
  `{"kind":"order","generation":1,"after":0,"from":1,"identities":[${identity}]}`,
  '{"kind":"lag","missing":{"eu.1":1}}',
]

const values = fc.oneof(
  oddObject,
  fc.jsonValue().map((value) => JSON.stringify(value)),
  fc.constantFrom('1e400', '-0', '"\\ud800"', '9007199254740993', '{', ']', ''),
  fc.integer({ min: 1, max: 5_000 }).map((depth) => '['.repeat(depth)),
)

/** One value of a frame is another, a piece of it is gone, or it is a frame twice. */
const frames = fc.oneof(
  fc.tuple(fc.constantFrom(...good), fc.nat(30), values).map(([frame, at, value]) => {
    const pieces = frame.split(/(?<=:)|(?=[,}])/)
    pieces[at % pieces.length] = value
    return pieces.join('')
  }),
  fc.tuple(fc.constantFrom(...good), oddObject).map(([frame, odd]) => `${frame.slice(0, -1)},${odd.slice(1)}`),
  fc.tuple(fc.constantFrom(...good), fc.nat(100), fc.nat(20)).map(([frame, from, length]) => {
    return frame.slice(0, from) + frame.slice(from + length)
  }),
  fc.constantFrom(...good).map((frame) => frame + frame),
  fc.string({ unit: 'binary', maxLength: 60 }),
)

/** Every frame is read, or refused with a short reason; none throws, and none changes what objects have. */
export function throwFrames(count: number, seed: number): Readonly<Record<string, number>> {
  const tally: Record<string, number> = { frame: 0, bad: 0 }
  for (const text of fc.sample(frames, { seed, numRuns: count })) {
    for (const decode of [decodeClientFrame, decodeServerFrame]) {
      const decoded = decode(text)
      tally[decoded.kind] = (tally[decoded.kind] ?? 0) + 1
      if (decoded.kind === 'bad') assert.ok(decoded.reason.length > 0 && decoded.reason.length <= 123, text)
    }
    assertUnpolluted()
  }
  assert.ok((tally['frame'] ?? 0) > 0, 'some are right')
  return tally
}
