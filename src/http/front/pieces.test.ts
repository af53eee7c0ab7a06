import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createPieces } from './pieces.ts'

test('a hundred thousand pieces of one byte are held in a few, and nothing is lost', () => {
  const pieces = createPieces()
  const sent = Buffer.from(Array.from({ length: 100_000 }, (_, at) => at % 251))
  for (const byte of sent) pieces.add(Buffer.of(byte))
  assert.equal(pieces.bytes, sent.length)
  const held = pieces.take()
  assert.ok(held.length < 25, `${held.length} pieces`)
  assert.ok(held.reduce((sum, { buffer }) => sum + buffer.byteLength, 0) < 2 * sent.length + 64 * 1_024)
  assert.ok(Buffer.concat(held).equals(sent))
  assert.equal(pieces.bytes, 0)
})

test('pieces of any length come out in the order in which they came', () => {
  for (const lengths of [[], [0], [5], [0, 3], [1, 70_000, 1, 1, 200_000, 7], [65_536, 65_536, 1]]) {
    const pieces = createPieces()
    const sent = lengths.map((length, at) => Buffer.alloc(length, at + 1))
    for (const piece of sent) pieces.add(piece)
    assert.ok(Buffer.from(pieces.takeWhole()).equals(Buffer.concat(sent)), String(lengths))
    pieces.add(Buffer.from('again'))
    assert.equal(Buffer.from(pieces.takeWhole()).toString(), 'again')
  }
})

test('one piece is given back as it came', () => {
  const pieces = createPieces()
  const only = Buffer.from('whole')
  pieces.add(only)
  assert.equal(pieces.takeWhole(), only)
})
