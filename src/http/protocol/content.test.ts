import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { isOnceError } from '../../ledger/core/errors.ts'
import { contentDefinition, readContent } from './content.ts'
import type { ContentKey } from './content-options.ts'
import type { Incoming, IncomingBody } from './exchange.ts'

const bytes = (text: string): IncomingBody => ({ bytes: Buffer.from(text) })

function posted(
  body: IncomingBody | string,
  type = 'application/json',
  target = '/messages',
  others: Readonly<Record<string, string>> = {},
): Incoming {
  const headers: Readonly<Record<string, string>> = { 'content-type': type, ...others }
  return {
    method: 'POST',
    target,
    header: (name) => (headers[name] === undefined ? [] : [headers[name]]),
    headers: () => Object.entries(headers),
    body: () => (typeof body === 'string' ? bytes(body) : body),
  }
}

const of: NonNullable<ContentKey['of']> = ({ to, text }) => [to, text]

const unreported = (error: unknown) => assert.fail(`${error} was reported`)

async function keyOf(incoming: Incoming, content: ContentKey = { of }): Promise<string> {
  const read = await readContent({}, content, incoming, unreported)
  assert.ok(read.kind === 'keyed', JSON.stringify(read))
  return read.key
}

test('a content is known by its parts, however the body is written', async () => {
  const key = await keyOf(posted('{"to":"ann","text":"hi"}'))
  const form = 'application/x-www-form-urlencoded'
  assert.equal(await keyOf(posted('{ "text": "hi", "note": 1, "to": "ann" }')), key)
  assert.equal(await keyOf(posted({ parsed: { to: 'ann', text: 'hi' } })), key)
  assert.equal(await keyOf(posted('text=hi&to=ann', form)), key)
  assert.equal(await keyOf(posted('hi', 'text/plain'), { of: (text) => ['ann', text] }), key)
})

test('a missing part is no empty one, a number no text, and two addresses are two contents', async () => {
  const bodies = [
    '{"to":"1"}',
    '{"to":1}',
    '{"to":true}',
    '{"to":"1","text":""}',
    '{"text":"1"}',
    '{"to":9007199254740993}',
  ]
  const keys = await Promise.all(bodies.map((body) => keyOf(posted(body))))
  keys.push(await keyOf(posted('{"to":"1"}', 'application/json', '/messages?now')))
  keys.push(await keyOf(posted('{"to":"1"}', 'application/json', '/letters')))
  assert.equal(new Set(keys).size, keys.length)
  assert.equal(await keyOf(posted('{"to":"1","text":null}')), keys[0])
})

test('without parts the whole body counts, by its meaning', async () => {
  const whole = (body: string) => keyOf(posted(body), {})
  assert.equal(await whole('{"a":1,"b":2}'), await whole('{ "b": 2, "a": 1 }'))
  assert.notEqual(await whole('{"a":1,"b":2}'), await whole('{"a":1,"b":3}'))
})

const compressed = posted({ bytes: gzipSync('{"to":"ann"}') }, 'application/json', '/messages', {
  'content-encoding': 'gzip',
})

test('without parts a compressed body counts by its bytes, and malformed JSON is refused', async () => {
  assert.equal(await keyOf(compressed, {}), await keyOf(compressed, {}))
  assert.notEqual(await keyOf(compressed, {}), await keyOf(posted('{"to":"ann"}'), {}))
  const read = await readContent({}, {}, posted('{"to":'), unreported)
  assert.ok(read.kind === 'problem')
  assert.equal(read.situation, 'invalid-request')
})

const uncomparable: readonly [what: string, incoming: Incoming, of: NonNullable<ContentKey['of']>][] = [
  ['it has none of the parts', posted('{"subject":"hi"}'), of],
  ['a part is an object', posted('{"to":{"in":[]}}'), of],
  ['a part is a number that lost its digits', posted('{"to":0.12345678901234567890123}'), of],
  ['the list of its parts is empty', posted('{"items":[]}'), (body) => body.items],
  ['the list of its parts is null', posted('{"items":null}'), (body) => body.items],
  ['it is not what it says', posted('{"to":'), of],
  ['it is neither JSON nor a form nor text', posted('\u0001', 'application/octet-stream'), of],
  ['it is empty', posted(''), of],
  ['it is compressed, and no parser has inflated it', compressed, of],
]

for (const [what, incoming, parts] of uncomparable) {
  test(`a body is refused when ${what}`, async () => {
    const read = await readContent({}, { of: parts }, incoming, unreported)
    assert.ok(read.kind === 'problem')
    assert.equal(read.situation, 'invalid-request')
    assert.match(read.detail.detail, /[.]$/)
  })
}

const suspicious: readonly [what: string, of: NonNullable<ContentKey['of']>, said: RegExp][] = [
  ['fails', (body) => [body.to.name], /^Cannot read properties of undefined/],
  ['returns undefined', (body) => body.items, /^`content[.]of` returned undefined: return the parts/],
]

for (const [what, parts, said] of suspicious) {
  test(`a body is refused when the function ${what}, and that is reported, because it may be a mistake of the route`, async () => {
    const reported: unknown[] = []
    const read = await readContent({}, { of: parts }, posted('{}'), (error) => reported.push(error))
    assert.ok(read.kind === 'problem')
    assert.equal(read.situation, 'invalid-request')
    assert.equal(reported.length, 1)
    assert.match((reported[0] as Error).message, said)
  })
}

const wrong: readonly [what: string, returned: unknown, text: string][] = [
  [
    'a text',
    'ann',
    '`content.of` returned string: return the parts that identify the request, as in [body.to, body.text].',
  ],
  [
    'a promise',
    Promise.resolve(['ann']),
    '`content.of` returned a promise: return the parts that identify the request, as in [body.to, body.text].',
  ],
]

for (const [what, returned, text] of wrong) {
  test(`a function that returns ${what} is a mistake of the route`, async () => {
    await assert.rejects(
      readContent({}, { of: () => returned as never }, posted('{}'), unreported),
      (error) => isOnceError(error, 'bad_option') && error.message.startsWith(text),
    )
  })
}

test('a content is an operation of its own, with the rules of its route', () => {
  const made = contentDefinition<never>(
    { name: 'a', effect: 'external', key: 'optional', retainMs: 5, afterExpiry: 'refuse', refuseMs: 7, shape: 2 },
    { withinMs: 60_000, waitMs: 10 },
  )
  assert.deepEqual(made, {
    name: 'guard.a',
    effect: 'external',
    key: 'optional',
    retainMs: 60_000,
    retainFrom: 'claimed',
    onAbandoned: 'hold_attached',
    unknownMs: 60_000,
    afterExpiry: 'new',
    whileRunning: { waitMs: 10 },
  })
  assert.equal(contentDefinition<never>({ effect: 'external', onAbandoned: 'hold' }, {}).onAbandoned, 'hold')
})
