import assert from 'node:assert/strict'
import { SECOND } from '../ledger/core/limits.ts'
import { notDone } from '../ledger/core/verdict.ts'
import type { Gate, HttpCase, Stage } from './http-stage.ts'
import { assertProblem, assertReplay, createGate, gatedCase, httpCase, pause, perStage } from './http-stage.ts'
import { until } from './until.ts'

/** Every row of the table of answers, in which the protocol speaks instead of the handler. */

const external = { effect: 'external' } as const
const done = { status: 201, body: { text: 'done' } } as const
const other = { body: '{"amount":2}' }

/** Runs the body while a first request is in its handler, and lets it continue afterwards. */
async function whileRunning(stage: Stage, gate: Gate, body: () => Promise<void>) {
  const first = stage.open()
  try {
    await gate.reached
    await body()
  } finally {
    gate.open()
  }
  const answer = await first.reply
  assert.equal(answer.status, 201, answer.text())
  assert.equal(answer.text(), 'done')
  assertReplay(await stage.ask(), answer)
  assert.equal(stage.runs, 1)
}

export const answerCases: readonly HttpCase[] = [
  httpCase(
    'answers: the first attempt gets what the handler answered',
    { definition: external },
    () => done,
    async (stage) => {
      const answer = await stage.ask()
      assert.equal(answer.status, 201)
      assert.equal(answer.text(), 'done')
      assert.equal(answer.header('idempotent-replayed'), null)
    },
  ),
  gatedCase('answers: a twin waits for the first attempt and gets its answer', external, done, async (stage, gate) => {
    await whileRunning(stage, gate, async () => {
      const twin = stage.open()
      await stage.came(2)
      gate.open()
      const replay = await twin.reply
      assert.equal(replay.status, 201)
      assert.equal(replay.text(), 'done')
      assert.equal(replay.header('idempotent-replayed'), 'true')
    })
  }),
  gatedCase(
    'answers: a twin that waited long enough gets "still running"',
    { ...external, whileRunning: { waitMs: 50 } },
    done,
    async (stage, gate) => {
      await whileRunning(stage, gate, async () => {
        const twin = await stage.ask()
        assertProblem(twin, 409, 'request-in-progress', true)
        assert.equal(twin.json().operation, 'POST /things')
        assert.match(twin.json().instance, /^\/operations\/[0-9a-f]{32}$/)
        assert.equal(typeof twin.json().retryAfterMs, 'number')
      })
    },
  ),
  gatedCase(
    'answers: conflict is answered at once',
    { ...external, whileRunning: 'conflict' },
    done,
    async (stage, gate) => {
      await whileRunning(stage, gate, async () => assertProblem(await stage.ask(), 409, 'request-in-progress', true))
    },
  ),
  gatedCase(
    'answers: accept answers with the place of the status',
    { ...external, whileRunning: 'accept' },
    done,
    async (stage, gate) => {
      await whileRunning(stage, gate, async () => {
        const twin = await stage.ask()
        assert.equal(twin.status, 202, twin.text())
        assert.match(twin.header('location') ?? '', /^\/operations\/[0-9a-f]{32}$/)
        const running = await stage.ask({ method: 'GET', target: twin.header('location') ?? '', key: null })
        assert.equal(running.status, 200, running.text())
        assert.equal(running.json().status, 'in_progress')
        assert.match(running.header('retry-after') ?? '', /^[1-9]\d*$/)
        gate.open()
        const look = () => stage.ask({ method: 'GET', target: twin.header('location') ?? '', key: null })
        await until('the operation ends', async () => (await look()).json().status === 'succeeded')
        assert.equal((await look()).json().result.status, 201)
      })
    },
  ),
  gatedCase(
    'answers: another payload is a conflict while the first runs, and afterwards',
    external,
    done,
    async (stage, gate) => {
      await whileRunning(stage, gate, async () => {
        assertProblem(await stage.ask(other), 409, 'idempotency-key-reused')
        gate.open()
        await pause(20)
        assertProblem(await stage.ask(other), 409, 'idempotency-key-reused')
      })
    },
  ),
  httpCase(
    'answers: what failed before its effect may be retried later',
    { definition: { effect: 'repeatable' } },
    (_call, { runs }) => (runs === 1 ? { throws: notDone(new Error('busy'), { retryAfterMs: 90 * SECOND }) } : done),
    async (stage) => {
      assert.equal((await stage.ask()).status, 500)
      const early = await stage.ask()
      assertProblem(early, 409, 'retry-later', true)
      assert.ok(Number(early.header('retry-after')) > 80, early.header('retry-after') ?? '')
      assert.equal(stage.runs, 1)
      await stage.advance(91 * SECOND)
      const later = await stage.ask()
      assert.equal(later.text(), 'done')
      assertReplay(await stage.ask(), later)
      assert.equal(stage.runs, 2)
    },
  ),
  httpCase(
    'answers: an unknown outcome is never tried again by itself',
    { definition: external },
    (_call, { runs }) => (runs === 1 ? { throws: new Error('boom') } : done),
    async (stage) => {
      assert.equal((await stage.ask()).status, 500)
      for (const _turn of [1, 2]) {
        const retry = await stage.ask()
        assertProblem(retry, 409, 'outcome-unknown')
        assert.equal(retry.header('retry-after'), null)
        assert.match(retry.json().instance, /^\/operations\/[0-9a-f]{32}$/)
      }
      assert.equal(stage.runs, 1)
    },
  ),
  httpCase(
    'answers: an expired key is refused where the route says so',
    { definition: { ...external, retainMs: 10 * SECOND, afterExpiry: 'refuse', refuseMs: 60 * SECOND } },
    () => done,
    async (stage) => {
      await stage.ask()
      await stage.advance(11 * SECOND)
      assertProblem(await stage.ask(), 412, 'key-expired')
      assert.equal(stage.runs, 1)
      await stage.advance(61 * SECOND)
      assert.equal((await stage.ask()).status, 201)
      assert.equal(stage.runs, 2)
    },
  ),
  httpCase(
    'answers: a caller that spams a key is rate limited',
    { definition: { ...external, perKeyLimit: { attempts: 3, perMs: 60 * SECOND } } },
    () => done,
    async (stage) => {
      for (const _turn of [1, 2, 3]) assert.equal((await stage.ask()).status, 201)
      assertProblem(await stage.ask(), 429, 'too-many-attempts', true)
      assert.equal((await stage.ask({ key: 'key-2' })).status, 201)
    },
  ),
  httpCase(
    'answers: without its store nothing runs, and every caller gets a retryable error',
    { definition: external },
    () => done,
    async (stage) => {
      stage.trouble.away = true
      assertProblem(await stage.ask(), 503, 'store-unavailable', true)
      assert.equal(stage.runs, 0)
      stage.trouble.away = false
      assert.equal((await stage.ask()).status, 201)
      assert.equal(stage.runs, 1)
    },
  ),
  httpCase(
    'answers: a caller that lost access is refused, and sees nothing else',
    { definition: { ...external, authorize: ({ header }) => header('x-lost') === undefined } },
    () => ({ status: 201, headers: [['location', '/secrets/7']], body: { text: 'secret' } }),
    async (stage) => {
      const first = await stage.ask()
      const lost = await stage.ask({ headers: [['x-lost', 'yes']] })
      assertProblem(lost, 403, 'not-authorized')
      assert.ok(!/secret|POST|operations/.test(JSON.stringify([lost.headers, lost.text()])), lost.text())
      assertReplay(await stage.ask(), first)
      assert.equal(stage.runs, 1)
    },
  ),
  httpCase(
    'answers: the problem types and links are where the options say',
    {
      definition: { ...external, name: 'thing.make' },
      http: { problemBase: 'https://errors.example/v1', operationsPath: '/api/operations' },
    },
    () => ({ throws: new Error('boom') }),
    async (stage) => {
      await stage.ask()
      const document = (await stage.ask()).json()
      assert.equal(document.type, 'https://errors.example/v1/outcome-unknown')
      assert.match(document.instance, /^\/api\/operations\/[0-9a-f]{32}$/)
      assert.equal(document.operation, 'thing.make')
    },
  ),
]

export const profileCases: readonly HttpCase[] = [
  httpCase(
    'profiles: ietf answers 422 for a reused key',
    { definition: external, http: { profile: 'ietf' } },
    () => done,
    async (stage) => {
      await stage.ask()
      assertProblem(await stage.ask(other), 422, 'idempotency-key-reused')
      assertProblem(await stage.ask({ key: null }), 400, 'idempotency-key-missing')
    },
  ),
  stripe(),
]

function stripe(): HttpCase {
  const gateOf = perStage(createGate)
  return httpCase(
    'profiles: stripe speaks in the shapes of its first version, and keeps every answer',
    { definition: { ...external, profile: 'stripe', whileRunning: 'conflict' } },
    async (call, stage) => {
      if (call.header('x-slow') !== undefined) await gateOf(stage).pass()
      return stage.runs === 2 ? { status: 500, body: { json: { error: { type: 'api_error' } } } } : done
    },
    async (stage) => {
      await stage.ask()
      const reused = await stage.ask(other)
      assert.equal(reused.status, 400)
      assert.equal(reused.header('content-type'), 'application/json')
      assert.equal(reused.json().error.type, 'idempotency_error')
      const failed = await stage.ask({ key: 'key-2' })
      assert.equal(failed.status, 500)
      assertReplay(await stage.ask({ key: 'key-2' }), failed)
      const slow = stage.open({ key: 'key-3', headers: [['x-slow', 'yes']] })
      await gateOf(stage).reached
      const twin = await stage.ask({ key: 'key-3', headers: [['x-slow', 'yes']] })
      assert.equal(twin.status, 409)
      const { type, code } = twin.json().error
      assert.deepEqual([type, code], ['idempotency_error', 'idempotency_key_in_use'])
      gateOf(stage).open()
      assert.equal((await slow.reply).status, 201)
      assert.equal(stage.runs, 3)
    },
  )
}
