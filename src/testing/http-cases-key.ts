import assert from 'node:assert/strict'
import type { AskOptions, HttpCase } from './http-stage.ts'
import { assertProblem, assertReplay, httpCase } from './http-stage.ts'

/** Where a key comes from, what it may look like, and who shares it. */

const repeatable = { effect: 'repeatable' } as const
const done = () => ({ status: 201, body: { text: 'done' } })

const goodKeys: readonly [what: string, first: string, again: string][] = [
  ['a bare key', 'pay-1', 'pay-1'],
  ['a quoted key and the same bare one', '"pay-2"', 'pay-2'],
  ['a quoted key with parameters', '"pay-3"; v=1', 'pay-3'],
  ['escapes inside of quotes', '"a\\"b\\\\c"', 'a"b\\c'],
  ['base64 with plus, slash and equals', 'a+b/c==', '"a+b/c=="'],
  ['a UUID that begins with a digit', '0195d2b4-7c1e-7000-8000-000000000001', '"0195d2b4-7c1e-7000-8000-000000000001"'],
  ['a comma inside of quotes', '"a,b"', '"a,b"'],
  ['255 bytes', 'k'.repeat(255), `"${'k'.repeat(255)}"`],
]

const badKeys: readonly [what: string, ask: AskOptions][] = [
  ['256 bytes', { key: 'k'.repeat(256) }],
  ['an empty key', { key: '' }],
  ['an empty quoted key', { key: '""' }],
  ['a comma outside of quotes', { key: 'a,b' }],
  ['a missing closing quote', { key: '"a' }],
  ['a space inside', { key: 'a b' }],
  ['a tab inside', { key: 'a\tb' }],
  ['bytes outside of ASCII', { key: 'k\u00e9y' }],
  ['two headers', { key: 'a', headers: [['idempotency-key', 'b']] }],
  ['two equal headers', { key: 'a', headers: [['Idempotency-Key', 'a']] }],
]

export const keyCases: readonly HttpCase[] = [
  ...goodKeys.map(([what, first, again]) =>
    httpCase(`key: ${what} is accepted and equal`, { definition: repeatable }, done, async (stage) => {
      const answer = await stage.ask({ key: first })
      assert.equal(answer.status, 201, answer.text())
      assertReplay(await stage.ask({ key: again }), answer)
      assert.equal(stage.runs, 1)
    }),
  ),
  ...badKeys.map(([what, ask]) =>
    httpCase(`key: ${what} is refused before anything is claimed`, { definition: repeatable }, done, async (stage) => {
      assertProblem(await stage.ask(ask), 400, 'idempotency-key-invalid')
      assert.equal(stage.runs, 0)
      assert.equal((await stage.records()).length, 0)
    }),
  ),
  httpCase('key: a control character never reaches the handler', { definition: repeatable }, done, async (stage) => {
    // Node's own parser refuses most of them, in words of its own.
    assert.equal((await stage.ask({ key: 'a\u0001b' })).status, 400)
    assert.equal(stage.runs, 0)
    assert.equal((await stage.records()).length, 0)
  }),
  httpCase('key: a missing one is refused where it is required', { definition: repeatable }, done, async (stage) => {
    assertProblem(await stage.ask({ key: null }), 400, 'idempotency-key-missing')
    assert.equal(stage.runs, 0)
    assert.equal((await stage.records()).length, 0)
  }),
  httpCase(
    'key: a missing one runs the handler as it is where it is optional',
    { definition: { ...repeatable, key: 'optional' } },
    async (call) => ({ status: 201, body: { json: { got: await call.json(), protected: call.context !== null } } }),
    async (stage) => {
      for (const turn of [1, 2]) {
        const answer = await stage.ask({ key: null })
        assert.deepEqual(answer.json(), { got: { amount: 1, to: 'bob' }, protected: false })
        assert.equal(answer.header('idempotent-replayed'), null)
        assert.equal(stage.runs, turn)
      }
      assert.equal((await stage.records()).length, 0)
      const keyed = await stage.ask()
      assert.deepEqual(keyed.json(), { got: { amount: 1, to: 'bob' }, protected: true })
      assertReplay(await stage.ask(), keyed)
      assert.equal(stage.runs, 3)
      assertProblem(await stage.ask({ key: 'a,b' }), 400, 'idempotency-key-invalid')
    },
  ),
  httpCase(
    'key: another header, such as the id of a webhook',
    { definition: { ...repeatable, keyFrom: { header: 'Webhook-Id' } } },
    done,
    async (stage) => {
      const id = { key: 'ignored', headers: [['webhook-id', 'msg_1']] } as const
      const answer = await stage.ask(id)
      assertReplay(await stage.ask({ ...id, key: 'also ignored' }), answer)
      assertProblem(await stage.ask(), 400, 'idempotency-key-missing')
      assert.equal(stage.runs, 1)
      assert.equal((await stage.records())[0]?.record.identity.key, 'msg_1')
    },
  ),
  httpCase(
    'key: a field of a JSON body',
    { definition: { ...repeatable, keyFrom: { field: 'meta.token' } } },
    done,
    async (stage) => {
      const body = '{"meta":{"token":"t-1"},"amount":1}'
      const answer = await stage.ask({ key: null, body })
      assertReplay(await stage.ask({ key: null, body: '{"amount":1, "meta":{"token":"t-1"}}' }), answer)
      assertProblem(
        await stage.ask({ key: null, body: '{"meta":{"token":"t-1"},"amount":2}' }),
        409,
        'idempotency-key-reused',
      )
      assertProblem(await stage.ask({ key: null, body: '{"amount":1}' }), 400, 'idempotency-key-missing')
      assertProblem(await stage.ask({ key: null, body: '{"meta":{"token":7}}' }), 400, 'idempotency-key-invalid')
      assert.equal(stage.runs, 1)
    },
  ),
  httpCase(
    'key: another tenant or caller with the same key never meets the record',
    { definition: repeatable },
    (call) => ({ status: 201, body: { text: `${call.header('x-tenant')}/${call.header('x-caller')}` } }),
    async (stage) => {
      const askers = [
        { tenant: 'acme', caller: 'ann' },
        { tenant: 'acme', caller: 'bob' },
        { tenant: 'acme-2', caller: 'ann' },
        { tenant: 'acmeann', caller: 'x' },
      ]
      for (const asker of askers) {
        const answer = await stage.ask(asker)
        assert.equal(answer.text(), `${asker.tenant}/${asker.caller}`)
        assertReplay(await stage.ask(asker), answer)
      }
      assert.equal(stage.runs, askers.length)
      for (const { tenant, caller } of askers) {
        for (const { record } of (await stage.ledger.list({ tenant, caller })).rows) {
          await stage.ledger.forget(record.identity)
        }
      }
    },
  ),
  httpCase(
    'key: two operations share none, also where they are the resources of one route',
    {
      path: '/things/:id',
      definition: repeatable,
      others: [{ method: 'PUT', path: '/things/:id', definition: repeatable }],
    },
    done,
    async (stage) => {
      const one = await stage.ask({ target: '/things/1' })
      const two = await stage.ask({ target: '/things/2' })
      assert.equal(two.header('idempotent-replayed'), null)
      const put = await stage.ask({ target: '/things/1', method: 'PUT' })
      assert.equal(put.header('idempotent-replayed'), null)
      assertReplay(await stage.ask({ target: '/things/1' }), one)
      assert.equal(stage.runs, 3)
      const operations = (await stage.records()).map(({ record }) => record.identity.operation)
      assert.deepEqual(operations.toSorted(), ['POST /things/1', 'POST /things/2', 'PUT /things/1'])
    },
  ),
]
