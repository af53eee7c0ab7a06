import assert from 'node:assert/strict'
import type { AskOptions, HttpCase } from './http-stage.ts'
import { assertProblem, assertReplay, httpCase } from './http-stage.ts'

/** What makes a request the same, and what makes it another one under a used key. */

const named = { name: 'thing.make', effect: 'repeatable' } as const
const done = () => ({ status: 201, body: { text: 'done' } })
const form = 'application/x-www-form-urlencoded'
const parts = (boundary: string, value: string) => ({
  type: `multipart/form-data; boundary=${boundary}`,
  body: `--${boundary}\r\ncontent-disposition: form-data; name="a"\r\n\r\n${value}\r\n--${boundary}--\r\n`,
})

const same: readonly [what: string, first: AskOptions, again: AskOptions][] = [
  ['member order and white space', { body: '{"a":1,"b":[1,2]}' }, { body: ' { "b" : [1, 2],\n"a":1.0 } ' }],
  ['the length declared or not', { body: '{"a":1}' }, { body: '{"a":1}', chunked: true }],
  [
    'the case and spelling of the content type',
    { type: 'application/json' },
    { type: 'Application/JSON; charset=UTF-8' },
  ],
  ['an escaped target', { target: '/things/a%7Eb' }, { target: '/things/a~b' }],
  [
    'headers that change with every attempt',
    {},
    {
      headers: [
        ['user-agent', 'x'],
        ['traceparent', '00-1-1-00'],
      ],
    },
  ],
  ['the order of a form’s names', { body: 'a=1&b=2&a=3', type: form }, { body: 'b=2&a=1&a=%33', type: form }],
  ['the boundary of a multipart body', parts('one', 'x'), parts('another', 'x')],
  ['a body that is missing in both', { body: '', type: null }, { body: '', type: null }],
]

const other: readonly [what: string, first: AskOptions, again: AskOptions][] = [
  ['another body', {}, { body: '{"amount":2,"to":"bob"}' }],
  [
    'a number that differs past the precision of a double',
    { body: '{"n":9007199254740993}' },
    { body: '{"n":9007199254740992}' },
  ],
  ['another path', { target: '/things/1' }, { target: '/things/2' }],
  ['another query', { target: '/things/1?a=1' }, { target: '/things/1?a=2' }],
  ['another If-Match', { headers: [['if-match', '"1"']] }, { headers: [['if-match', '"2"']] }],
  ['an If-None-Match that was not there', {}, { headers: [['if-none-match', '*']] }],
  ['another content type', { body: 'a=1', type: form }, { body: 'a=1', type: 'text/plain' }],
  ['another form', { body: 'a=1&b=2', type: form }, { body: 'a=1&b=3', type: form }],
  ['another order under one name of a form', { body: 'a=1&a=2', type: form }, { body: 'a=2&a=1', type: form }],
  ['another part of a multipart body', parts('one', 'x'), parts('one', 'y')],
  [
    'other bytes',
    { body: Buffer.from([0, 255, 1]), type: 'application/octet-stream' },
    { body: Buffer.from([0, 255, 2]), type: 'application/octet-stream' },
  ],
]

/** Many resources under one name, so that only the fingerprint distinguishes them. */
const spread = { path: '/things/:id', definition: named }

export const fingerprintCases: readonly HttpCase[] = [
  ...same.map(([what, first, again]) =>
    httpCase(`fingerprint: ${what} does not matter`, spread, done, async (stage) => {
      const answer = await stage.ask({ target: '/things/1', ...first })
      assert.equal(answer.status, 201, answer.text())
      assertReplay(await stage.ask({ target: '/things/1', ...again }), answer)
      assert.equal(stage.runs, 1)
    }),
  ),
  ...other.map(([what, first, again]) =>
    httpCase(`fingerprint: ${what} is another request`, spread, done, async (stage) => {
      const answer = await stage.ask({ target: '/things/1', ...first })
      assert.equal(answer.status, 201, answer.text())
      assertProblem(await stage.ask({ target: '/things/1', ...again }), 409, 'idempotency-key-reused')
      assert.equal(stage.runs, 1)
      // The good record is untouched.
      assertReplay(await stage.ask({ target: '/things/1', ...first }), answer)
    }),
  ),
  httpCase(
    'fingerprint: only the chosen fields count',
    { definition: { ...named, fingerprint: ({ amount }: { amount: number }) => ({ amount }) } },
    done,
    async (stage) => {
      const answer = await stage.ask({ body: '{"amount":1,"at":"12:00"}' })
      assertReplay(await stage.ask({ body: '{"at":"12:01","amount":1}' }), answer)
      assertProblem(await stage.ask({ body: '{"amount":2,"at":"12:00"}' }), 409, 'idempotency-key-reused')
    },
  ),
  httpCase(
    'fingerprint: a replay is decided before preconditions are',
    { method: 'PUT', definition: { effect: 'repeatable' } },
    (call, { runs }) => {
      if (call.header('if-match') !== `"${runs}"`) return { status: 412, body: { text: 'changed' } }
      return { status: 200, headers: [['etag', `"${runs + 1}"`]], body: { text: 'saved' } }
    },
    async (stage) => {
      const ask = { headers: [['if-match', '"1"']] } as const
      const answer = await stage.ask(ask)
      assert.equal(answer.status, 200)
      assertReplay(await stage.ask(ask), answer)
      assert.equal((await stage.ask({ ...ask, key: 'key-2' })).status, 412)
    },
  ),
]
