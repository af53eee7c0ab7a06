import assert from 'node:assert/strict'
import type { ContentKey } from '../http/protocol/content-options.ts'
import type { RouteDefinition } from '../http/protocol/route.ts'
import { MINUTE } from '../ledger/core/limits.ts'
import type { Asker, Call } from './http-site.ts'
import type { HttpCase, Stage } from './http-stage.ts'
import { assertProblem, assertReplay, createGate, httpCase, perStage } from './http-stage.ts'

/** Requests without a key, on routes that take their content for one. */

const of = ({ amount, to }: { readonly amount: number; readonly to?: string }) => [amount, to]

function byContent(content: ContentKey = {}): RouteDefinition<Asker> {
  return { name: 'thing.make', effect: 'external', key: 'optional', content: { of, ...content } }
}

async function make(call: Call, stage: Stage) {
  return { status: 201, body: { json: { id: stage.runs, got: await call.json() } } }
}

const keyless = { key: null } as const
const gateOf = perStage(createGate)

export const contentCases: readonly HttpCase[] = [
  httpCase(
    'content: without a key the same content runs once',
    { definition: byContent(), servers: 2 },
    make,
    async (stage) => {
      const twins = await Promise.all([1, 2, 3, 4].map(() => stage.ask(keyless)))
      assert.equal(stage.runs, 1)
      const [first] = twins.filter((twin) => twin.header('idempotent-replayed') === null)
      assert.ok(first !== undefined)
      assert.deepEqual([first.status, first.json()], [201, { id: 1, got: { amount: 1, to: 'bob' } }])
      assertReplay(await stage.ask({ ...keyless, body: '{ "to": "bob", "note": "again", "amount": 1 }' }), first)
      for (const [run, body] of ['{"amount":1}', '{"amount":1,"to":""}', '{"amount":2,"to":"bob"}'].entries()) {
        assert.equal((await stage.ask({ ...keyless, body })).json().id, run + 2, `${body} is another content`)
      }
      assert.equal((await stage.ask({ ...keyless, target: '/things?for=eve' })).json().id, 5, 'another address')
    },
  ),
  httpCase(
    'content: the window counts from the claim, and no duplicate extends it',
    { definition: { ...byContent(), leaseMs: 10 * MINUTE }, servers: 2 },
    async (call, stage) => {
      if (stage.runs === 1) await stage.advance(5 * MINUTE)
      return make(call, stage)
    },
    async (stage) => {
      const first = await stage.ask(keyless)
      await stage.advance(8 * MINUTE)
      assertReplay(await stage.ask(keyless), first)
      await stage.advance(2 * MINUTE)
      assert.equal((await stage.ask(keyless)).json().id, 2)
    },
  ),
  httpCase('content: with a key the key decides', { definition: byContent() }, make, async (stage) => {
    await stage.ask(keyless)
    const keyed = await stage.ask()
    assert.deepEqual([keyed.status, keyed.json().id], [201, 2])
    assertReplay(await stage.ask(), keyed)
    assertProblem(await stage.ask({ key: 'a,b' }), 400, 'idempotency-key-invalid')
    assert.equal(stage.runs, 2)
  }),
  httpCase(
    'content: callers of a tenant share it, unless its scope is the caller',
    {
      definition: byContent(),
      others: [{ method: 'POST', path: '/own', definition: { ...byContent({ scope: 'caller' }), name: 'thing.own' } }],
    },
    make,
    async (stage) => {
      const first = await stage.ask(keyless)
      assertReplay(await stage.ask({ ...keyless, caller: 'bob' }), first)
      assert.equal((await stage.ask({ ...keyless, tenant: 'another' })).json().id, 2)
      const own = await stage.ask({ ...keyless, target: '/own' })
      assertReplay(await stage.ask({ ...keyless, target: '/own' }), own)
      assert.equal((await stage.ask({ ...keyless, target: '/own', caller: 'bob' })).json().id, 4)
    },
  ),
  httpCase(
    'content: while the original is in flight, its duplicate gets 409 after its wait',
    { definition: byContent({ waitMs: 100 }), servers: 2 },
    async (call, stage) => {
      if (stage.runs === 1) await gateOf(stage).pass()
      return make(call, stage)
    },
    async (stage) => {
      const first = stage.open(keyless)
      await gateOf(stage).reached
      const duplicate = await stage.ask({ ...keyless, caller: 'bob' })
      const status = await stage.ask({ ...keyless, method: 'GET', target: duplicate.json().instance, caller: 'bob' })
      gateOf(stage).open()
      assertProblem(duplicate, 409, 'request-in-progress', true)
      assert.equal(status.json().status, 'in_progress')
      const original = await first.reply
      assertReplay(await stage.ask({ ...keyless, caller: 'bob' }), original)
      assert.equal(stage.runs, 1)
    },
  ),
  httpCase(
    'content: a failed original is answered as under a key',
    { definition: byContent() },
    (_call, stage) => {
      switch (stage.runs) {
        case 1:
          return { status: 422, body: { text: 'no' } }
        case 2:
          return { status: 429, body: { text: 'later' } }
        default:
          return { status: 500, body: { text: 'broken' } }
      }
    },
    async (stage) => {
      const refused = await stage.ask(keyless)
      assertReplay(await stage.ask(keyless), refused)
      const other = { ...keyless, body: '{"amount":2}' }
      assert.deepEqual([(await stage.ask(other)).status, (await stage.ask(other)).status], [429, 500])
      assertProblem(await stage.ask(other), 409, 'outcome-unknown')
      assert.equal(stage.runs, 3)
    },
  ),
  httpCase(
    'content: in a transaction the write and the record commit together',
    { definition: { ...byContent(), effect: 'transaction' } as RouteDefinition<Asker>, servers: 2 },
    async (call, stage) => {
      await stage.write(call, `run ${stage.runs}`)
      return make(call, stage)
    },
    async (stage) => {
      const first = await stage.ask(keyless)
      assertReplay(await stage.ask(keyless), first)
      assert.deepEqual(await stage.written(), ['run 1'])
    },
  ),
  httpCase(
    'content: while the store is down the handler runs without protection',
    { definition: byContent() },
    async (call, stage) => (call.context === null ? make(call, stage) : { status: 500 }),
    async (stage) => {
      stage.trouble.away = true
      for (const id of [1, 2]) {
        const answer = await stage.ask(keyless)
        assert.deepEqual([answer.status, answer.json()], [201, { id, got: { amount: 1, to: 'bob' } }])
      }
    },
  ),
  httpCase(
    'content: while the store is down a closed route answers 503',
    { definition: byContent({ onStoreDown: 'closed' }) },
    make,
    async (stage) => {
      stage.trouble.away = true
      assertProblem(await stage.ask(keyless), 503, 'store-unavailable', true)
      assert.equal(stage.runs, 0)
    },
  ),
  httpCase(
    'content: a body that cannot be compared is refused before anything is claimed',
    { definition: byContent(), maxBodyBytes: 100 },
    make,
    async (stage) => {
      for (const body of ['{"amount":{"in":[1]}}', '{"note":"neither"}', '[]']) {
        assertProblem(await stage.ask({ ...keyless, body }), 400, 'invalid-request')
      }
      // Some frameworks have an own message for it.
      const large = await stage.ask({ ...keyless, type: 'application/octet-stream', body: 'x'.repeat(200) })
      assert.equal(large.status, 413, large.text())
      assert.deepEqual([stage.runs, (await stage.records()).length], [0, 0])
    },
  ),
  httpCase(
    'content: a body on which the function of the route fails is refused, and the failure is reported',
    { definition: byContent({ of: ({ items }) => [items.length] }) },
    make,
    async (stage) => {
      assertProblem(await stage.ask(keyless), 400, 'invalid-request')
      assert.equal(stage.faults.length, 1)
      assert.ok(stage.faults[0] instanceof TypeError, String(stage.faults[0]))
      assert.deepEqual([stage.runs, (await stage.records()).length], [0, 0])
    },
  ),
]
