import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Incoming, IncomingBody } from './exchange.ts'
import { bodyTooLarge } from './exchange.ts'
import type { ReadRequest } from './read.ts'
import { createReader } from './read.ts'
import type { RouteDefinition } from './route.ts'

const route: RouteDefinition<never> = { name: 'thing.make', effect: 'repeatable' }
const readRequest = async (definition: RouteDefinition<never>, request: Incoming) =>
  createReader(definition).read(request)
const json: Readonly<Record<string, string>> = { 'content-type': 'application/json', 'idempotency-key': 'k' }

function incoming(
  body: IncomingBody | (() => Promise<IncomingBody>) | string,
  given: Partial<Pick<Incoming, 'method' | 'target'>> & { headers?: Readonly<Record<string, string>> } = {},
): Incoming {
  const { method = 'POST', target = '/things', headers = json } = given
  const read = typeof body === 'string' ? { bytes: Buffer.from(body) } : body
  return {
    method,
    target,
    header: (name) => (headers[name] === undefined ? [] : [headers[name]]),
    headers: () => Object.entries(headers),
    body: typeof read === 'function' ? read : async () => read,
  }
}

async function inputOf(request: Incoming, definition = route): Promise<unknown> {
  const read = await readRequest(definition, request)
  assert.ok(read.kind === 'keyed', JSON.stringify(read))
  return read.fingerprints
}

test('the method belongs to what is asked, also of a named operation', async () => {
  const post = await inputOf(incoming('{}'))
  assert.notDeepEqual(await inputOf(incoming('{}', { method: 'PUT' })), post)
  assert.deepEqual(await inputOf(incoming(' {} ')), post)
})

test('the body of a request without a key is left alone', async () => {
  const never = () => assert.fail('the body was read')
  const keyless = incoming(never, { headers: {}, target: '/a%zz' })
  assert.deepEqual(await readRequest({ ...route, key: 'optional' }, keyless), { kind: 'keyless' })
  assert.deepEqual(await readRequest({ ...route, key: 'optional', content: {} }, keyless), { kind: 'keyless' })
  assert.deepEqual(situation(await readRequest(route, keyless)), 'idempotency-key-missing')
  const malformed = incoming(never, { headers: { 'idempotency-key': 'a,b' } })
  assert.equal(situation(await readRequest({ ...route, key: 'optional' }, malformed)), 'idempotency-key-invalid')
})

function situation(read: ReadRequest): string {
  return read.kind === 'problem' ? read.situation : read.kind
}

test('JSON that a parser has eaten is equal to the same JSON as bytes', async () => {
  const bytes = await inputOf(incoming('{"b":[1,2], "a":"ä"}'))
  assert.deepEqual(await inputOf(incoming({ parsed: { a: 'ä', b: [1, 2] } })), bytes)
  assert.notDeepEqual(await inputOf(incoming({ parsed: { a: 'ä', b: [1, 3] } })), bytes)
})

test('a form or multipart body that a parser has eaten counts by its fields, and by its type without the boundary', async () => {
  const parts = (boundary: string) => ({ ...json, 'content-type': `multipart/form-data; boundary=${boundary}` })
  const one = await inputOf(incoming({ parsed: { a: '1', b: '2' } }, { headers: parts('one') }))
  assert.deepEqual(await inputOf(incoming({ parsed: { b: '2', a: '1' } }, { headers: parts('two') })), one)
  assert.notDeepEqual(await inputOf(incoming({ parsed: { a: '1', b: '3' } }, { headers: parts('one') })), one)
  const form = { ...json, 'content-type': 'application/x-www-form-urlencoded' }
  assert.notDeepEqual(await inputOf(incoming({ parsed: { a: '1', b: '2' } }, { headers: form })), one)
})

test('an encoded body counts by its bytes, unless it was decoded before', async () => {
  const headers = { ...json, 'content-encoding': 'gzip' }
  const same = (bytes: string) => ({ bytes: Buffer.from(bytes) })
  const sealed = await inputOf(incoming(same('{"a":1}'), { headers }))
  assert.notDeepEqual(await inputOf(incoming(same('{"a": 1}'), { headers })), sealed)
  const open = await inputOf(incoming({ ...same('{"a":1}'), inflated: true }, { headers }))
  assert.deepEqual(await inputOf(incoming({ ...same('{"a": 1}'), inflated: true }, { headers })), open)
})

test('a body that cannot be read is a problem of the request', async () => {
  assert.equal(situation(await readRequest(route, incoming('{'))), 'invalid-request')
  assert.equal(situation(await readRequest(route, incoming('{}', { target: '/a%zz' }))), 'invalid-request')
  const large = incoming(async () => {
    throw bodyTooLarge(10)
  })
  assert.equal(situation(await readRequest(route, large)), 'content-too-large')
  const broken = incoming(async () => {
    throw new Error('not about the request')
  })
  await assert.rejects(readRequest(route, broken), /not about the request/)
})

test('the body is read in every form that the route has had', async () => {
  const shaped: RouteDefinition<never> = {
    ...route,
    fingerprint: ({ amount }: { amount: number }) => ({ amount }),
    shape: 2,
    shapes: { 1: (body) => body as unknown },
  }
  const of = async (body: IncomingBody | string) => {
    const read = await readRequest(shaped, incoming(body))
    assert.ok(read.kind === 'keyed')
    return read.fingerprints
  }
  const [a, b] = [await of('{"amount":1,"note":"a"}'), await of('{"amount":1,"note":"b"}')]
  assert.equal(a[0], b[0])
  assert.notEqual(a[1], b[1])
  assert.deepEqual(await of({ parsed: { note: 'a', amount: 1 } }), a)
  const before = await readRequest(route, incoming('{"note":"a","amount":1}'))
  assert.ok(before.kind === 'keyed')
  assert.deepEqual(a.slice(1), before.fingerprints)
})
