import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import type { Act } from './http-site.ts'
import type { HttpCase } from './http-stage.ts'
import { assertProblem, assertReplay, httpCase } from './http-stage.ts'

/** A retry gets the bytes of the first answer, whatever they are and however they were sent. */

const external = { effect: 'external' } as const
const MEBIBYTE = 1_024 * 1_024

/** Every byte there is, in an order that no text encoding survives. */
const binary = Uint8Array.from({ length: 2_048 }, (_, at) => (at * 167 + (at >> 8)) % 256)
const zipped = gzipSync('{"zipped":true}')
const large = Buffer.alloc(3 * MEBIBYTE, 'three mebibytes ')

async function* pieces(...chunks: readonly (string | Uint8Array)[]): AsyncGenerator<Uint8Array, undefined> {
  for (const chunk of chunks) {
    await new Promise((resolve) => void setImmediate(resolve))
    yield typeof chunk === 'string' ? Buffer.from(chunk) : chunk
  }
}

/** A handler that uses one buffer for everything it writes, as copying loops do. */
async function* reused(): AsyncGenerator<Uint8Array, undefined> {
  const buffer = Buffer.alloc(4)
  for (const text of ['aaaa', 'bbbb', 'cccc']) {
    buffer.write(text)
    yield buffer
    await new Promise((resolve) => void setImmediate(resolve))
    buffer.fill('x')
  }
}

const answers: readonly [what: string, act: Act, expected: { status: number; body: string | Uint8Array }][] = [
  ['JSON', { status: 201, body: { json: { a: [1, 'ä', null] } } }, { status: 201, body: '{"a":[1,"ä",null]}' }],
  ['a text', { body: { text: 'grüße' } }, { status: 200, body: 'grüße' }],
  ['bytes', { headers: [['content-type', 'image/png']], body: { bytes: binary } }, { status: 200, body: binary }],
  ['bytes without a type', { body: { bytes: binary } }, { status: 200, body: binary }],
  ['an empty 200', {}, { status: 200, body: '' }],
  ['an empty text', { body: { text: '' } }, { status: 200, body: '' }],
  ['204', { status: 204 }, { status: 204, body: '' }],
  ['304', { status: 304, headers: [['etag', '"1"']] }, { status: 304, body: '' }],
  ['303 with its location', { status: 303, headers: [['location', '/things/7']] }, { status: 303, body: '' }],
  [
    'several writes',
    { body: { writes: () => pieces('one ', binary, ' two') } },
    { status: 200, body: Buffer.concat([Buffer.from('one '), binary, Buffer.from(' two')]) },
  ],
  ['a stream', { status: 202, body: { stream: () => pieces('{"a":', '1', '}') } }, { status: 202, body: '{"a":1}' }],
  [
    'an empty stream',
    { headers: [['content-type', 'text/csv']], body: { stream: () => pieces() } },
    { status: 200, body: '' },
  ],
  ['a buffer that is used again', { body: { writes: reused } }, { status: 200, body: 'aaaabbbbcccc' }],
  ['a stream that uses its buffer again', { body: { stream: reused } }, { status: 200, body: 'aaaabbbbcccc' }],
  [
    'bytes that the handler compressed',
    {
      headers: [
        ['content-type', 'application/json'],
        ['content-encoding', 'gzip'],
      ],
      body: { bytes: zipped },
    },
    { status: 200, body: zipped },
  ],
  [
    'a refusal',
    { status: 422, headers: [['content-type', 'application/problem+json']], body: { text: '{"title":"no"}' } },
    { status: 422, body: '{"title":"no"}' },
  ],
  ['404', { status: 404, body: { json: { error: 'gone' } } }, { status: 404, body: '{"error":"gone"}' }],
]

export const replayCases: readonly HttpCase[] = [
  ...answers.map(([what, act, expected]) =>
    httpCase(
      `replay: ${what}, byte for byte`,
      { definition: external },
      () => act,
      async (stage) => {
        const first = await stage.ask()
        assert.equal(first.status, expected.status, first.text())
        assert.ok(first.whole)
        assert.ok(first.body.equals(Buffer.from(expected.body as string)), first.text())
        // From the cache of this process, and from the record.
        assertReplay(await stage.ask(), first)
        assertReplay(await stage.ask(), first)
        assert.equal(stage.runs, 1)
      },
    ),
  ),
  httpCase(
    'replay: what describes the answer is kept, what belongs to the exchange never is',
    { definition: { ...external, keepHeaders: ['X-Thing-Id'] } },
    () => ({
      status: 201,
      headers: [
        ['location', '/things/7'],
        ['etag', '"v1"'],
        ['link', '</a>; rel="next"'],
        ['link', '</b>; rel="prev"'],
        ['content-language', 'de'],
        ['content-type', 'text/csv'],
        ['x-thing-id', '7'],
        ['set-cookie', 'session=1'],
        ['set-cookie', 'other=2'],
        ['x-ratelimit-remaining', '7'],
        ['ratelimit-limit', '10'],
        ['traceparent', '00-abc-def-01'],
        ['x-request-id', 'r1'],
        ['x-anything', 'else'],
      ],
      body: { bytes: Buffer.from('a;b') },
    }),
    async (stage) => {
      const first = await stage.ask()
      assert.deepEqual(first.all('set-cookie'), ['session=1', 'other=2'])
      assert.equal(first.header('x-anything'), 'else')
      const replay = await stage.ask()
      const dropped = [
        'set-cookie',
        'x-ratelimit-remaining',
        'ratelimit-limit',
        'traceparent',
        'x-request-id',
        'x-anything',
      ]
      assertReplay(replay, first, dropped)
      for (const name of dropped) assert.equal(replay.header(name), null, name)
      assert.equal(replay.header('location'), '/things/7')
      assert.equal(replay.header('etag'), '"v1"')
      assert.equal(replay.all('link').join(', '), '</a>; rel="next", </b>; rel="prev"')
      assert.equal(replay.header('content-language'), 'de')
      assert.equal(replay.header('x-thing-id'), '7')
    },
  ),
  ...[true, false].map((declared) =>
    httpCase(
      `replay: a HEAD has no body, and keeps the headers that describe it${declared ? '' : ', also without a length'}`,
      { method: 'HEAD', definition: external },
      () => ({
        headers: [
          ['etag', '"h"'],
          ['content-type', 'text/plain'],
          ...(declared ? [['content-length', '5'] as const] : []),
        ],
        body: { bytes: Buffer.from('hello') },
      }),
      async (stage) => {
        const first = await stage.ask()
        assert.equal(first.status, 200)
        assert.equal(first.body.length, 0)
        if (declared) assert.equal(first.header('content-length'), '5')
        const replay = await stage.ask()
        assertReplay(replay, first)
        assert.equal(replay.header('content-length'), first.header('content-length'))
        assert.equal(stage.runs, 1)
      },
    ),
  ),
  ...(['bytes', 'stream'] as const).map((how) =>
    httpCase(
      `replay: 3 MB as ${how} pass whole, are not kept, and never run again`,
      { definition: external },
      async ({ context }) => {
        await context?.attach({ type: 'export', id: 'e-7' })
        const headers = [
          ['content-type', 'text/plain'],
          ['location', '/exports/7'],
          ['set-cookie', 'a=1'],
        ] as const
        return {
          status: 201,
          headers,
          body: how === 'bytes' ? { bytes: large } : { stream: () => pieces(...cut(large)) },
        }
      },
      async (stage) => {
        const first = await stage.ask()
        assert.equal(first.status, 201)
        assert.ok(first.whole && first.body.equals(large), `${first.body.length} bytes`)
        for (const _turn of [1, 2]) {
          const retry = await stage.ask()
          assertProblem(retry, 409, 'response-not-stored')
          const { headers, ...original } = retry.json().original
          assert.deepEqual(original, {
            status: 201,
            bytes: large.length,
            sha256: createHash('sha256').update(large).digest('hex'),
            pointer: { type: 'export', id: 'e-7' },
          })
          assert.equal(headers['content-type'], first.header('content-type'))
          assert.equal(headers.location, '/exports/7')
          assert.equal(headers['set-cookie'], undefined)
        }
        assert.equal(stage.runs, 1)
        assert.equal((await stage.records())[0]?.record.state, 'succeeded')
      },
    ),
  ),
  httpCase(
    'replay: an answer just within the cap is kept, one byte more is not',
    { definition: { ...external, maxAnswerBytes: 1_000 } },
    async (call) => ({ body: { bytes: Buffer.alloc(((await call.json()) as { size: number }).size, 'x') } }),
    async (stage) => {
      const fits = await stage.ask({ key: 'fits', body: '{"size":1000}' })
      assertReplay(await stage.ask({ key: 'fits', body: '{"size":1000}' }), fits)
      assert.equal((await stage.ask({ key: 'more', body: '{"size":1001}' })).body.length, 1_001)
      assertProblem(await stage.ask({ key: 'more', body: '{"size":1001}' }), 409, 'response-not-stored')
      assert.equal(stage.runs, 2)
    },
  ),
  httpCase(
    'replay: one MiB is kept',
    { definition: external },
    () => ({ body: { bytes: Buffer.alloc(MEBIBYTE, binary) } }),
    async (stage) => {
      const first = await stage.ask()
      assert.equal(first.body.length, MEBIBYTE)
      assertReplay(await stage.ask(), first)
    },
  ),
]

function cut(bytes: Buffer): Buffer[] {
  const parts: Buffer[] = []
  for (let at = 0; at < bytes.length; at += 100_000) parts.push(bytes.subarray(at, at + 100_000))
  return parts
}
