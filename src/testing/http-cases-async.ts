import assert from 'node:assert/strict'
import { SECOND } from '../ledger/core/limits.ts'
import type { Reply } from './http-client.ts'
import type { Act } from './http-site.ts'
import type { HttpCase, Stage } from './http-stage.ts'
import { assertReplay, createGate, gatedCase, httpCase, perStage } from './http-stage.ts'
import { until } from './until.ts'

/** `Prefer: respond-async` on a route that offers it: 202 for the caller, while the handler continues. */

const prefer = (value: string) => ({ headers: [['prefer', value]] as const })
const now = prefer('respond-async')
const external = { effect: 'external', respondAsync: true } as const
const transaction = { effect: 'transaction', respondAsync: true } as const

const created: Act = { status: 201, headers: [['location', '/things/7']], body: { json: { id: 7 } } }

function assertAccepted(reply: Reply): string {
  assert.equal(reply.status, 202, reply.text())
  assert.ok(reply.whole, 'cut')
  assert.equal(reply.header('content-type'), 'application/problem+json')
  assert.equal(reply.json().type, '/problems/request-accepted')
  assert.equal(reply.header('preference-applied'), 'respond-async')
  assert.match(reply.header('retry-after') ?? '', /^[1-9]\d*$/)
  const location = reply.header('location') ?? ''
  assert.match(location, /^\/operations\/[0-9a-f]{32}$/)
  assert.equal(reply.json().instance, location)
  return location
}

const look = async (stage: Stage, location: string) => stage.ask({ method: 'GET', target: location, key: null })

/** Polls until the operation has ended, and returns its status then. */
// oxlint-disable-next-line typescript/no-explicit-any -- what a body holds is the test's own business.
async function ended(stage: Stage, location: string): Promise<any> {
  return until('the operation ends', async () => {
    const reply = await look(stage, location)
    assert.equal(reply.status, 200, reply.text())
    return reply.json().status === 'in_progress' ? null : reply.json()
  })
}

const kinds = [
  ['external', external],
  ['transaction', transaction],
] as const

export const asyncCases: readonly HttpCase[] = [
  ...kinds.map(([kind, definition]) =>
    gatedCase(`async: 202 at once, then the result (${kind})`, definition, created, async (stage, gate) => {
      const accepted = await stage.ask(now)
      const location = assertAccepted(accepted)
      await gate.reached
      const running = await look(stage, location)
      assert.equal(running.json().status, 'in_progress', running.text())
      assert.match(running.header('retry-after') ?? '', /^[1-9]\d*$/)
      gate.open()
      const { status, result } = await ended(stage, location)
      assert.deepEqual([status, result.status, result.body], ['succeeded', 201, { id: 7 }])
      assert.equal(result.headers.location, '/things/7')
      // A synchronous caller under another key gets what the replay repeats.
      const replay = await stage.ask(now)
      const first = await stage.ask({ key: 'key-2' })
      assertReplay(replay, first)
      assert.equal(replay.header('preference-applied'), null)
      assert.equal(stage.runs, 2)
    }),
  ),
  ...kinds.map(([kind, definition]) =>
    httpCase(
      `async: a handler that answers within the wait is waited for (${kind})`,
      { definition },
      () => created,
      async (stage) => {
        const answer = await stage.ask(prefer('respond-async, wait=20'))
        assert.equal(answer.status, 201, answer.text())
        assert.equal(answer.header('preference-applied'), null)
        assertReplay(await stage.ask(), answer)
        assert.equal(stage.runs, 1)
      },
    ),
  ),
  ...kinds.map(([kind, definition]) =>
    gatedCase(`async: 202 when the wait is over (${kind})`, definition, created, async (stage, gate) => {
      const location = assertAccepted(await stage.ask(prefer('wait=1, respond-async')))
      gate.open()
      assert.equal((await ended(stage, location)).result.status, 201)
      assert.equal((await stage.ask()).header('idempotent-replayed'), 'true')
      assert.equal(stage.runs, 1)
    }),
  ),
  gatedCase('async: a retry while it runs waits as the route says', external, created, async (stage, gate) => {
    assertAccepted(await stage.ask(now))
    await gate.reached
    const retry = stage.open(now)
    gate.open()
    const replay = await retry.reply
    assert.deepEqual([replay.status, replay.header('idempotent-replayed')], [201, 'true'])
    assert.equal(stage.runs, 1)
  }),
  gatedCase(
    'async: a retry that waited long enough gets 202 where it prefers that, and else 409',
    { ...external, whileRunning: { waitMs: 20 } },
    created,
    async (stage) => {
      const location = assertAccepted(await stage.ask(now))
      assert.equal(assertAccepted(await stage.ask(now)), location)
      const plain = await stage.ask()
      assert.deepEqual([plain.status, plain.header('preference-applied')], [409, null])
      assert.equal(stage.runs, 1)
    },
  ),
  ...kinds.map(([kind, definition]) =>
    gatedCase(
      `async: twenty at once are one run, and get its 202 or its answer (${kind})`,
      { ...definition, whileRunning: 'accept' },
      created,
      async (stage, gate) => {
        const twins = Array.from({ length: 20 }, () => stage.open(now))
        await gate.reached
        await Promise.race(twins.map(({ reply }) => reply))
        gate.open()
        for (const reply of await Promise.all(twins.map((each) => each.reply))) {
          if (reply.status !== 201) assertAccepted(reply)
        }
        // All of them may have been answered with 202, while the handler still writes its response.
        await until('the response is recorded', async () => (await stage.ask()).status === 201)
        assert.equal(stage.runs, 1)
      },
    ),
  ),
  ...kinds.map(([kind, definition]) =>
    gatedCase(
      `async: what the handler refuses after the 202 is recorded (${kind})`,
      definition,
      { status: 422, body: { json: { code: 'no' } } },
      async (stage, gate) => {
        const location = assertAccepted(await stage.ask(now))
        gate.open()
        const { status, result } = await ended(stage, location)
        assert.deepEqual([status, result.status, result.body], ['failed_terminal', 422, { code: 'no' }])
        const replay = await stage.ask()
        assert.deepEqual([replay.status, replay.header('idempotent-replayed')], [422, 'true'])
        assert.equal(stage.runs, 1)
      },
    ),
  ),
  gatedCase(
    'async: a handler that throws after the 202 leaves an unknown outcome',
    external,
    { throws: new Error('boom') },
    async (stage, gate) => {
      const location = assertAccepted(await stage.ask(now))
      gate.open()
      const { status, problem } = await ended(stage, location)
      assert.deepEqual([status, problem.type], ['unknown', '/problems/outcome-unknown'])
      assert.equal((await stage.ask()).status, 409)
      assert.equal(stage.runs, 1)
    },
  ),
  httpCase(
    'async: a transaction that fails after the 202 leaves nothing, and its key is free',
    { definition: transaction },
    async (call, stage) => {
      await stage.write(call, `run ${stage.runs}`)
      return stage.runs === 1 ? { throws: new Error('boom') } : created
    },
    async (stage) => {
      const location = assertAccepted(await stage.ask(now))
      await until('it is undone', async () => (await look(stage, location)).status === 404)
      assert.equal((await stage.ask()).status, 201)
      assert.deepEqual(await stage.written(), ['run 2'])
    },
  ),
  gatedCase('async: a client that hangs up after its 202 changes nothing', external, created, async (stage, gate) => {
    const first = stage.open(now)
    await first.received('request-accepted')
    first.hangUp()
    await gate.reached
    gate.open()
    await until('it is recorded', async () => (await stage.records())[0]?.record.state === 'succeeded')
    assert.equal((await stage.ask()).status, 201)
    assert.equal(stage.runs, 1)
  }),
  ...(['stream', 'writes'] as const).map((how) => {
    const gateOf = perStage(createGate)
    async function* parts(stage: Stage): AsyncGenerator<Uint8Array> {
      yield Buffer.from('first ')
      await gateOf(stage).pass()
      for (let turn = 0; turn < 100; turn++) yield Buffer.alloc(1_000, 'x')
    }
    return httpCase(
      `async: ${how} that no client reads are recorded whole`,
      { definition: external },
      (_call, stage) => ({ body: how === 'stream' ? { stream: () => parts(stage) } : { writes: () => parts(stage) } }),
      async (stage) => {
        const location = assertAccepted(await stage.ask(now))
        await gateOf(stage).reached
        gateOf(stage).open()
        assert.equal((await ended(stage, location)).status, 'succeeded')
        assert.equal((await stage.ask()).body.length, 100_006)
        assert.equal(stage.runs, 1)
      },
    )
  }),
  httpCase(
    'async: an answer that has begun within the wait continues to its end',
    { definition: external },
    () => ({
      body: {
        writes: async function* () {
          yield Buffer.from('first ')
          await new Promise((resolve) => void setTimeout(resolve, 1.2 * SECOND))
          yield Buffer.from('last')
        },
      },
    }),
    async (stage) => {
      const answer = await stage.ask(prefer('respond-async, wait=1'))
      assert.deepEqual([answer.status, answer.text(), answer.whole], [200, 'first last', true])
      assertReplay(await stage.ask(), answer)
      assert.equal(stage.runs, 1)
    },
  ),
  httpCase(
    'async: the preference is ignored without a key, on a replay, with a problem, and where it is not offered',
    {
      definition: { ...external, key: 'optional' },
      others: [{ method: 'POST', path: '/plain', definition: { effect: 'external' } }],
    },
    () => created,
    async (stage) => {
      assert.equal((await stage.ask({ ...now, key: null })).status, 201)
      assert.equal((await stage.ask({ ...now, target: '/plain' })).status, 201)
      const first = await stage.ask()
      assertReplay(await stage.ask(now), first)
      assert.equal((await stage.ask({ ...now, body: '{"amount":2}' })).status, 409)
      assert.equal((await stage.ask({ ...now, key: 'bad key, twice' })).status, 400)
      assert.equal(stage.runs, 3)
    },
  ),
  gatedCase(
    'async: a caller without a key gets 202 in words that speak of none',
    { ...external, name: 'thing.make', key: 'optional', content: { waitMs: 20 } },
    created,
    async (stage) => {
      const keyless = { ...now, key: null }
      for (const accepted of [await stage.ask(keyless), await stage.ask(keyless)]) {
        assert.equal(accepted.status, 202, accepted.text())
        const { operation, detail, instance } = accepted.json()
        assert.deepEqual([operation, detail], ['thing.make', 'An identical request is still being processed.'])
        const status = await look(stage, instance)
        assert.deepEqual([status.json().operation, status.json().status], ['thing.make', 'in_progress'])
      }
      assert.equal(stage.runs, 1)
    },
  ),
]
