import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeValue } from '../../ledger/core/codec.ts'
import { asStoredAnswer, replayedAnswer, storedAnswer } from './record.ts'

const rules = { keep: 'response', headers: new Set<string>() } as const
const stored = (body: Uint8Array, text?: string) => storedAnswer({ status: 200, headers: [], body, text }, rules, null)

function encoded(value: unknown): string {
  const written = encodeValue(value)
  assert.ok('text' in written)
  return written.text
}

const bodies: Readonly<Record<string, Uint8Array>> = {
  JSON: Buffer.from('{"a":"ä – 漢字"}'),
  'many quotes': Buffer.from(JSON.stringify(Array(10_000).fill(''))),
  'control characters': Buffer.from('\u0001'.repeat(10_000)),
  'not UTF-8': Buffer.from([0xff, 0xfe, 0x00]),
  'a byte order mark': Buffer.from([0xef, 0xbb, 0xbf, 0x7b, 0x7d]),
  nothing: new Uint8Array(),
}

for (const [what, body] of Object.entries(bodies)) {
  test(`a body is kept once, byte for byte, and takes no more room than in base64: ${what}`, () => {
    const value = stored(body)
    assert.notEqual(value.text === undefined, value.body === undefined, 'as text or as bytes')
    const text = encoded(value)
    const inBase64 = encoded({ status: 200, headers: [], body: Buffer.from(body) })
    assert.ok(Buffer.byteLength(text) <= Buffer.byteLength(inBase64), `${text.length} against ${inBase64.length}`)
    if (value.text !== undefined) assert.equal(JSON.stringify(value), text, 'text is plain JSON already')
    const again = asStoredAnswer(value)
    assert.ok(again !== null)
    assert.deepEqual(Buffer.from(replayedAnswer(again, 'POST').body), Buffer.from(body))
  })
}

test('headers that an adapter adds to a replay are not in the next one', () => {
  const value = asStoredAnswer(stored(Buffer.from('{}'), '{}'))
  assert.ok(value !== null)
  const first = replayedAnswer(value, 'POST')
  ;(first.headers as [string, string][]).push(['set-cookie', 'a=1'])
  assert.ok(replayedAnswer(value, 'POST').headers.every(([name]) => name !== 'set-cookie'))
})
