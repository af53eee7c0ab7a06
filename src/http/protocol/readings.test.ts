import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Incoming } from './exchange.ts'
import type { KeyedRequest } from './read.ts'
import { createReader } from './read.ts'

const json = { 'content-type': 'application/json', 'idempotency-key': 'k' }

function incoming(
  body: string | Uint8Array,
  changes: Partial<Incoming> = {},
  more: Record<string, string> = {},
): Incoming {
  const headers: Readonly<Record<string, string>> = { ...json, ...more }
  return {
    method: 'POST',
    target: '/things',
    header: (name) => (headers[name] === undefined ? [] : [headers[name]]),
    headers: () => Object.entries(headers),
    body: () => ({ bytes: typeof body === 'string' ? Buffer.from(body) : body }),
    ...changes,
  }
}

function remembering() {
  const reader = createReader({ effect: 'repeatable' })
  const read = (request: Incoming) => {
    const found = reader.read(request)
    assert.ok(!(found instanceof Promise) && found.kind === 'keyed')
    return found
  }
  return { reader, read }
}

test('the same bytes with the same head are read once, and everything else is read', () => {
  const { reader, read } = remembering()
  const request = incoming('{"a":1}')
  const first = read(request)
  reader.remember(first, request)
  const again: KeyedRequest = read(incoming('{"a":1}'))
  assert.deepEqual(again.fingerprints, first.fingerprints)
  assert.equal(again.bytes, null, 'it was not read again')
  const others = [
    incoming('{"a":2}'),
    incoming('{"a":1} '),
    incoming('{"a":1}', { method: 'PUT' }),
    incoming('{"a":1}', { target: '/things?x' }),
    incoming('{"a":1}', {}, { 'content-type': 'text/plain' }),
    incoming('{"a":1}', {}, { 'content-encoding': 'gzip' }),
    incoming('{"a":1}', {}, { 'if-match': '"1"' }),
    incoming('{"a":1}', {}, { 'if-none-match': '*' }),
  ]
  for (const other of others) assert.notEqual(read(other).bytes, null)
  const [, spaced, ...different] = others
  assert.ok(spaced !== undefined)
  assert.deepEqual(read(spaced).fingerprints, first.fingerprints, 'white space means nothing')
  for (const other of different) assert.notDeepEqual(read(other).fingerprints, first.fingerprints)
})

test('a buffer that its framework uses again does not change what was remembered', () => {
  const { reader, read } = remembering()
  const bytes = Buffer.from('{"a":1}')
  const request = incoming(bytes)
  const first = read(request)
  reader.remember(first, request)
  bytes.write('2', 5)
  assert.notDeepEqual(read(incoming(bytes)).fingerprints, first.fingerprints)
  assert.deepEqual(read(incoming('{"a":1}')).fingerprints, first.fingerprints)
})

test('what was remembered is bounded: the oldest is read again', () => {
  const { reader, read } = remembering()
  const filler = 'x'.repeat(15_000)
  for (let n = 0; n < 300; n++) {
    const request = incoming(`{"a":"${filler}${n}"}`, {}, { 'idempotency-key': `k${n}` })
    reader.remember(read(request), request)
  }
  const keyed = (n: number) => read(incoming(`{"a":"${filler}${n}"}`, {}, { 'idempotency-key': `k${n}` }))
  assert.notEqual(keyed(0).bytes, null)
  assert.equal(keyed(299).bytes, null)
})

test('what surrounds a body counts as well', () => {
  const { reader, read } = remembering()
  const target = `/things?${'x'.repeat(8_000)}`
  for (let n = 0; n < 300; n++) {
    const request = incoming('{}', { target }, { 'idempotency-key': `k${n}` })
    reader.remember(read(request), request)
  }
  const keyed = (n: number) => read(incoming('{}', { target }, { 'idempotency-key': `k${n}` }))
  assert.notEqual(keyed(0).bytes, null)
  assert.equal(keyed(299).bytes, null)
})
