import assert from 'node:assert/strict'
import type { IncomingBody } from '../http/protocol/exchange.ts'
import { jsonAnswer } from '../http/protocol/exchange.ts'
import type { RouteDefinition } from '../http/protocol/route.ts'
import { MINUTE } from '../ledger/core/limits.ts'
import type { GuardOptions } from '../ledger/guard/guard.ts'
import { createGuard } from '../ledger/guard/guard.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { unreachable } from './http-faults.ts'
import type { Asker, Call } from './http-site.ts'
import type { CaseOptions, HttpCase, Stage } from './http-stage.ts'
import { assertProblem, assertReplay, createGate, httpCase, perStage } from './http-stage.ts'

/** Requests without a key, on routes that leave them to a guard on their content. */

type Message = readonly [tenant: string, content: string]

const PATIENCE_MS = 100

function textOf(body: IncomingBody): string {
  return 'bytes' in body ? Buffer.from(body.bytes).toString() : JSON.stringify(body.parsed)
}

/** Every server of a case has a guard of its own; the locks are in the store that they share. */
function guarded(options: Partial<GuardOptions<Message>> = {}): CaseOptions['definition'] {
  return (ledger: Ledger<unknown>, tenant: string): RouteDefinition<Asker> => {
    const guard = createGuard<Message>({ ledger, name: 'things', identity: (message) => message, ...options })
    return {
      name: 'thing.make',
      effect: 'external',
      key: 'guarded',
      guard: {
        send: async (asker, effect, body) =>
          guard.send([asker.header('x-tenant') ?? tenant, textOf(await body())], effect),
        duplicate: ({ original }) => jsonAnswer(200, 'application/json', { duplicateOf: original }),
      },
    }
  }
}

/** Makes a thing, and names it before anything else happens. */
async function make(call: Call, stage: Stage) {
  const id = `t-${stage.runs}`
  await call.context?.attach({ type: 'thing', id })
  return {
    status: 201,
    body: { json: { id, got: await call.json(), tx: call.context !== null && 'tx' in call.context } },
  }
}

const keyless = { key: null } as const
const made = { got: { amount: 1, to: 'bob' }, tx: false }
const gateOf = perStage(createGate)

export const guardCases: readonly HttpCase[] = [
  httpCase(
    'guard: without a key the same content runs once, for its window',
    { definition: guarded(), servers: 2 },
    make,
    async (stage) => {
      const first = await stage.ask(keyless)
      assert.deepEqual([first.status, first.json()], [201, { id: 't-1', ...made }])
      for (const _ of [1, 2]) {
        const again = await stage.ask(keyless)
        assert.deepEqual([again.status, again.json()], [200, { duplicateOf: { type: 'thing', id: 't-1' } }])
      }
      assert.equal(stage.runs, 1)
      assert.equal((await stage.ask({ ...keyless, body: '{"amount":1,"to":"bob" }' })).status, 201)
      assert.equal((await stage.ask({ ...keyless, tenant: 'another' })).status, 201)
      assert.equal(stage.runs, 3)
      await stage.advance(15 * MINUTE)
      assert.deepEqual((await stage.ask(keyless)).json(), { id: 't-4', ...made })
    },
  ),
  httpCase('guard: with a key the key decides', { definition: guarded() }, make, async (stage) => {
    await stage.ask(keyless)
    const keyed = await stage.ask()
    assert.deepEqual([keyed.status, keyed.json()], [201, { id: 't-2', ...made }])
    assertReplay(await stage.ask(), keyed)
    assertProblem(await stage.ask({ key: 'a,b' }), 400, 'idempotency-key-invalid')
    assert.equal(stage.runs, 2)
  }),
  httpCase(
    'guard: while the original is in flight, its duplicate is sent away after a while',
    { definition: guarded({ waitMs: PATIENCE_MS }), servers: 2 },
    async (call, stage) => {
      if (stage.runs === 1) await gateOf(stage).pass()
      return make(call, stage)
    },
    async (stage) => {
      const first = stage.open(keyless)
      await gateOf(stage).reached
      const duplicate = await stage.ask(keyless)
      gateOf(stage).open()
      assertProblem(duplicate, 409, 'request-in-progress', true)
      assert.equal((await first.reply).status, 201)
      assert.deepEqual((await stage.ask(keyless)).json(), { duplicateOf: { type: 'thing', id: 't-1' } })
      assert.equal(stage.runs, 1)
    },
  ),
  httpCase(
    'guard: what came to nothing holds no lock',
    { definition: guarded() },
    async (call, stage) => {
      switch (stage.runs) {
        case 1:
          return { status: 422, body: { text: 'no' } }
        case 2:
          throw new Error('broken')
        case 3:
          call.context?.notDone()
          return { status: 200, body: { text: 'not now' } }
        default:
          return make(call, stage)
      }
    },
    async (stage) => {
      const statuses: number[] = []
      for (const _ of [1, 2, 3, 4, 5]) statuses.push((await stage.ask(keyless)).status)
      assert.deepEqual(statuses, [422, 500, 200, 201, 200])
      assert.equal(stage.runs, 4)
    },
  ),
  httpCase(
    'guard: a handler that names nothing is stood for by its location, or by its status',
    { definition: guarded() },
    (call) =>
      call.header('x-place') === undefined ? { status: 202 } : { status: 201, headers: [['location', '/t/9']] },
    async (stage) => {
      const placed = { ...keyless, headers: [['x-place', 'yes']] } as const
      assert.equal((await stage.ask(placed)).status, 201)
      assert.deepEqual((await stage.ask(placed)).json(), { duplicateOf: { type: 'location', id: '/t/9' } })
      const plain = { ...keyless, body: '{"amount":2}' }
      assert.equal((await stage.ask(plain)).status, 202)
      assert.deepEqual((await stage.ask(plain)).json(), { duplicateOf: { type: 'status', id: '202' } })
      assert.equal(stage.runs, 2)
    },
  ),
  httpCase(
    'guard: locks that cannot be asked do not stop the handler',
    { definition: guarded(), wrap: (store) => unreachable(store, () => true) },
    async (call) => ({ status: 201, body: { json: { got: await call.json(), protected: call.context !== null } } }),
    async (stage) => {
      for (const _ of [1, 2]) {
        const answer = await stage.ask(keyless)
        assert.deepEqual([answer.status, answer.json()], [201, { got: made.got, protected: false }])
      }
      assert.equal(stage.runs, 2)
    },
  ),
  httpCase(
    'guard: locks that cannot be asked refuse the request where the guard fails closed',
    { definition: guarded({ failClosed: true }), wrap: (store) => unreachable(store, () => true) },
    make,
    async (stage) => {
      assertProblem(await stage.ask(keyless), 503, 'store-unavailable', true)
      assert.equal(stage.runs, 0)
    },
  ),
  httpCase(
    'guard: a body that is too large is refused before anything is locked',
    { definition: guarded(), maxBodyBytes: 100 },
    make,
    async (stage) => {
      const answer = await stage.ask({ ...keyless, type: 'application/octet-stream', body: 'x'.repeat(200) })
      // Some frameworks have an own message for it.
      assert.equal(answer.status, 413, answer.text())
      assert.equal(stage.runs, 0)
      assert.equal((await stage.records()).length, 0)
    },
  ),
]
