import assert from 'node:assert/strict'
import type { State } from '../ledger/core/record.ts'
import { final, notDone, released, singleCall } from '../ledger/core/verdict.ts'
import type { Act } from './http-site.ts'
import type { HttpCase, Stage } from './http-stage.ts'
import { assertProblem, assertReplay, httpCase } from './http-stage.ts'

/** Which answers are an outcome, which give the claim back, and which leave open what happened. */

const done = { status: 201, body: { text: 'done' } } as const
const other = { body: '{"amount":2}' }

async function stateOf(stage: Stage): Promise<State | 'none'> {
  const [view, ...others] = await stage.records()
  assert.equal(others.length, 0)
  return view?.record.state ?? 'none'
}

/** The claim was given back: the key is free, also for another payload. */
async function assertFree(stage: Stage): Promise<void> {
  assert.equal(await stateOf(stage), 'none')
  const { runs } = stage
  const next = await stage.ask(other)
  assert.equal(next.status, 201, next.text())
  assert.equal(next.header('idempotent-replayed'), null)
  assert.equal(stage.runs, runs + 1)
}

async function assertFinal(stage: Stage, first: Awaited<ReturnType<Stage['ask']>>): Promise<void> {
  const { runs } = stage
  assertReplay(await stage.ask(), first)
  assertProblem(await stage.ask(other), 409, 'idempotency-key-reused')
  assert.equal(stage.runs, runs)
}

const firstThen =
  (first: Act) =>
  (_call: unknown, { runs }: Stage) =>
    runs === 1 ? first : done
const answering = (status: number, headers: Act['headers'] = []): Act => ({
  status,
  headers,
  body: { text: `a ${status}` },
})
const later = [['retry-after', '5']] as const

const releasing: readonly [what: string, act: Act][] = [
  ...[401, 403, 407, 408, 421, 425, 429].map((status): [string, Act] => [String(status), answering(status)]),
  ['503 with Retry-After', answering(503, later)],
]

const final4xx = [400, 402, 404, 409, 410, 412, 422]

export const finalityCases: readonly HttpCase[] = [
  ...releasing.map(([what, act]) =>
    httpCase(
      `finality: ${what} gives the claim back`,
      { definition: { effect: 'external' } },
      firstThen(act),
      async (stage) => {
        const first = await stage.ask()
        assert.equal(first.status, act.status)
        assert.equal(first.text(), `a ${act.status}`)
        await assertFree(stage)
      },
    ),
  ),
  ...final4xx.map((status) =>
    httpCase(
      `finality: ${status} is final`,
      { definition: { effect: 'external' } },
      firstThen(answering(status)),
      async (stage) => {
        const first = await stage.ask()
        assert.equal(first.status, status)
        assert.equal(await stateOf(stage), 'failed_terminal')
        await assertFinal(stage, first)
      },
    ),
  ),
  httpCase(
    'finality: what the handler marks as not done gives the claim back, whatever its status',
    { definition: { effect: 'external' } },
    ({ context }, { runs }) => {
      if (runs > 1) return done
      context?.notDone()
      return answering(200)
    },
    async (stage) => {
      assert.equal((await stage.ask()).text(), 'a 200')
      await assertFree(stage)
    },
  ),
  httpCase(
    'finality: what is thrown after the mark gives the claim back too',
    { definition: { effect: 'external' } },
    ({ context }, { runs }) => {
      if (runs > 1) return done
      context?.notDone()
      return { throws: new Error('nothing sent') }
    },
    async (stage) => {
      assert.equal((await stage.ask()).status, 500)
      await assertFree(stage)
    },
  ),
  ...effects(),
  ...verdicts(),
  httpCase(
    'finality: snapshot keeps what the handler answered, unless it was about the caller or the moment',
    { definition: { effect: 'external', finality: 'snapshot' } },
    ({ header }) => {
      const status = Number(header('x-status'))
      return status === 0 ? { throws: new Error('boom') } : answering(status)
    },
    async (stage) => {
      for (const status of [422, 500, 503, 0]) {
        const ask = { key: `key-${status}`, headers: [['x-status', String(status)]] } as const
        const first = await stage.ask(ask)
        assert.equal(first.status, status === 0 ? 500 : status)
        assertReplay(await stage.ask(ask), first)
      }
      assert.equal(stage.runs, 4)
      for (const status of [401, 429]) {
        const ask = { key: `key-${status}`, headers: [['x-status', String(status)]] } as const
        for (const _again of [1, 2]) assert.equal((await stage.ask(ask)).status, status)
      }
      assert.equal(stage.runs, 8)
    },
  ),
  httpCase(
    'finality: success-only frees the key for anything but a success',
    { definition: { effect: 'external', finality: 'success-only' } },
    firstThen(answering(422)),
    async (stage) => {
      assert.equal((await stage.ask()).status, 422)
      await assertFree(stage)
      const again = await stage.ask(other)
      assert.deepEqual([again.text(), again.header('idempotent-replayed')], ['done', 'true'])
    },
  ),
]

/** The effect table, for a handler that answers 5xx and for one that throws. */
function effects(): HttpCase[] {
  const fails: readonly [what: string, act: Act, status: number][] = [
    ['500', answering(500), 500],
    ['503 without Retry-After', answering(503), 503],
    ['a thrown error', { throws: new Error('boom') }, 500],
  ]
  return fails.flatMap(([what, act, status]) => [
    httpCase(
      `finality: ${what} of an external effect is unknown`,
      { definition: { effect: 'external' } },
      firstThen(act),
      async (stage) => {
        assert.equal((await stage.ask()).status, status)
        assert.equal(await stateOf(stage), 'unknown')
        assertProblem(await stage.ask(), 409, 'outcome-unknown')
        assert.equal(stage.runs, 1)
      },
    ),
    httpCase(
      `finality: ${what} of a repeatable effect may be tried again`,
      { definition: { effect: 'repeatable' } },
      firstThen(act),
      async (stage) => {
        assert.equal((await stage.ask()).status, status)
        assert.equal(await stateOf(stage), 'failed_retryable')
        const second = await stage.ask()
        assert.equal(second.text(), 'done')
        assertReplay(await stage.ask(), second)
        assert.equal(stage.runs, 2)
      },
    ),
    httpCase(
      `finality: ${what} of a transaction leaves nothing`,
      { definition: { effect: 'transaction' } },
      async (call, stage) => {
        await stage.write(call, `run ${stage.runs}`)
        return stage.runs === 1 ? act : done
      },
      async (stage) => {
        assert.equal((await stage.ask()).status, status)
        assert.equal(await stateOf(stage), 'none')
        assert.deepEqual(await stage.written(), [])
        assert.equal((await stage.ask()).text(), 'done')
        assert.deepEqual(await stage.written(), ['run 2'])
      },
    ),
  ])
}

/** What is thrown may say more than the answer that a framework makes of it. */
function verdicts(): HttpCase[] {
  const refused = Object.assign(new TypeError('fetch failed'), { cause: { code: 'ECONNREFUSED' } })
  return [
    httpCase(
      'finality: a thrown refused connection proves nothing by itself',
      { definition: { effect: 'external' } },
      firstThen({ throws: refused }),
      async (stage) => {
        assert.equal((await stage.ask()).status, 500)
        assert.equal(await stateOf(stage), 'unknown')
        assertProblem(await stage.ask(), 409, 'outcome-unknown')
        assert.equal(stage.runs, 1)
      },
    ),
    httpCase(
      'finality: with `classify: singleCall` a thrown refused connection proves that nothing was sent',
      { definition: { effect: 'external', classify: singleCall } },
      firstThen({ throws: refused }),
      async (stage) => {
        assert.equal((await stage.ask()).status, 500)
        assert.equal(await stateOf(stage), 'failed_retryable')
        assert.equal((await stage.ask()).text(), 'done')
        assert.equal(stage.runs, 2)
      },
    ),
    httpCase(
      'finality: a thrown notDone may be tried again',
      { definition: { effect: 'external' } },
      firstThen({ throws: notDone(new Error('not sent')) }),
      async (stage) => {
        assert.equal((await stage.ask()).status, 500)
        assert.equal(await stateOf(stage), 'failed_retryable')
      },
    ),
    httpCase(
      'finality: a thrown released frees the key',
      { definition: { effect: 'external' } },
      firstThen({ throws: released(new Error('not taken')) }),
      async (stage) => {
        assert.equal((await stage.ask()).status, 500)
        await assertFree(stage)
      },
    ),
    httpCase(
      'finality: a thrown final is never tried again',
      { definition: { effect: 'external' } },
      firstThen({ throws: final(new Error('no')) }),
      async (stage) => {
        const first = await stage.ask()
        assert.equal(first.status, 500)
        assert.equal(await stateOf(stage), 'failed_terminal')
        await assertFinal(stage, first)
      },
    ),
  ]
}
