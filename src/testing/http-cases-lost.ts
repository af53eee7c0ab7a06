import assert from 'node:assert/strict'
import type { Act } from './http-site.ts'
import type { Gate, HttpCase, Stage } from './http-stage.ts'
import { assertProblem, assertReplay, createGate, httpCase, pause, perStage } from './http-stage.ts'
import { until } from './until.ts'

/** Answers that never arrived, clients that left, twins that came at once: one effect, and one answer for all. */

const external = { effect: 'external' } as const
const done = { status: 201, body: { text: 'done' } } as const
const gateOf = perStage(createGate)

async function* gated(stage: Stage): AsyncGenerator<Uint8Array, undefined> {
  yield Buffer.from('begin,')
  await gateOf(stage).pass()
  yield Buffer.from('middle,')
  await pause(5)
  yield Buffer.from('end')
}

async function* broken(stage: Stage): AsyncGenerator<Uint8Array, undefined> {
  yield Buffer.from('begin,')
  await gateOf(stage).pass()
  throw new Error('broken in the middle')
}

async function* short(): AsyncGenerator<Uint8Array, undefined> {
  yield Buffer.from('do')
  yield Buffer.from('ne')
}

const CHUNK_BYTES = 1_024 * 1_024
const PLENTY_CHUNKS = 100
/** What the sockets of both sides may hold, and what is kept for the record, with room to spare. */
const MOST_AHEAD = 40
const givenOf = perStage(() => ({ chunks: 0 }))

/** More than sockets and streams hold, so that the writer has to wait for its client. */
async function* plenty(stage: Stage): AsyncGenerator<Uint8Array, undefined> {
  for (let at = 0; at < PLENTY_CHUNKS; at++) {
    givenOf(stage).chunks++
    yield Buffer.alloc(CHUNK_BYTES, String(at % 10))
  }
}

async function settled(stage: Stage): Promise<void> {
  await until('the outcome is recorded', async () => {
    const [view] = await stage.records()
    return view !== undefined && view.record.state !== 'in_progress'
  })
}

const ways = ['writes', 'stream'] as const
const as = (way: (typeof ways)[number], body: () => AsyncIterable<Uint8Array>): Act =>
  way === 'writes' ? { status: 201, body: { writes: body } } : { status: 201, body: { stream: body } }

export const lostCases: readonly HttpCase[] = [
  ...(['text', ...ways] as const).map((way) =>
    httpCase(
      `lost: a client that dies while the handler runs finds ${way} on the retry`,
      { definition: external },
      async (_call, stage) => {
        await gateOf(stage).pass()
        return way === 'text' ? done : as(way, short)
      },
      async (stage) => {
        const first = stage.open()
        await gateOf(stage).reached
        first.hangUp()
        await pause(30)
        gateOf(stage).open()
        const retry = await stage.ask()
        assert.deepEqual([retry.status, retry.text(), retry.header('idempotent-replayed')], [201, 'done', 'true'])
        assert.equal(stage.runs, 1)
        assert.deepEqual(stage.faults, [])
      },
    ),
  ),
  httpCase(
    'lost: a client that dies when everything was sent gets the same bytes on the retry',
    { definition: external },
    () => done,
    async (stage) => {
      const first = stage.open()
      await first.begun
      first.hangUp()
      const retry = await stage.ask()
      assert.deepEqual([retry.status, retry.text(), retry.header('idempotent-replayed')], [201, 'done', 'true'])
      assert.equal(stage.runs, 1)
    },
  ),
  ...ways.map((way) =>
    httpCase(
      `lost: a client that dies in the middle of ${way} gets all of it on the retry`,
      { definition: external },
      (_call, stage) => as(way, () => gated(stage)),
      async (stage) => {
        const first = stage.open()
        await first.received('begin,')
        await gateOf(stage).reached
        first.hangUp()
        await pause(30)
        gateOf(stage).open()
        await settled(stage)
        const retry = await stage.ask()
        assert.deepEqual([retry.status, retry.text()], [201, 'begin,middle,end'])
        assert.equal(retry.header('idempotent-replayed'), 'true')
        assert.equal(stage.runs, 1)
      },
    ),
  ),
  ...ways.map((way) =>
    httpCase(
      `lost: a client that does not read ${way} sets the pace, and its end is no reason to wait forever`,
      { definition: external },
      (_call, stage) => as(way, () => plenty(stage)),
      async (stage) => {
        const first = stage.open({ deaf: true })
        const given = givenOf(stage)
        await until('the handler has to wait', async () => {
          const before = given.chunks
          await pause(100)
          return before > 0 && given.chunks === before
        })
        assert.ok(given.chunks < MOST_AHEAD, `${given.chunks} MiB were taken from the handler`)
        first.hangUp()
        await settled(stage)
        assertProblem(await stage.ask(), 409, 'response-not-stored')
        assert.equal(stage.runs, 1)
        assert.equal((await stage.records())[0]?.record.state, 'succeeded')
      },
    ),
  ),
  ...ways.map((way) =>
    httpCase(
      `lost: a handler that breaks in the middle of ${way} cuts its answer, and its outcome is unknown`,
      { definition: external },
      (_call, stage) => as(way, () => broken(stage)),
      async (stage) => {
        const first = stage.open()
        await first.received('begin,')
        gateOf(stage).open()
        assert.equal((await first.reply).whole, false)
        await settled(stage)
        assertProblem(await stage.ask(), 409, 'outcome-unknown')
        assert.equal(stage.runs, 1)
      },
    ),
  ),
  ...ways.map((way) =>
    httpCase(
      `lost: a handler that breaks in the middle of ${way}, and marked that nothing was done, frees its key`,
      { definition: external },
      ({ context }, stage) => {
        if (stage.runs > 1) return done
        context?.notDone()
        return as(way, () => broken(stage))
      },
      async (stage) => {
        const first = stage.open()
        await first.received('begin,')
        gateOf(stage).open()
        assert.equal((await first.reply).whole, false)
        await until('the key is free', async () => (await stage.records()).length === 0)
        assert.equal((await stage.ask({ body: '{"amount":2}' })).text(), 'done')
      },
    ),
  ),
  httpCase(
    'lost: a client that hangs up before its body is whole claims nothing',
    { definition: external },
    () => done,
    async (stage) => {
      const first = stage.open({ cutAfter: 5 })
      await pause(50)
      first.hangUp()
      await pause(50)
      assert.equal(stage.runs, 0)
      assert.equal((await stage.records()).length, 0)
      assert.equal((await stage.ask()).status, 201)
    },
  ),
  // The client leaves while its claim is on the way: it is given back, and the handler never runs.
  httpCase(
    'lost: a client that leaves before its claim is granted gives it back',
    { definition: external },
    () => done,
    async (stage) => {
      const gate = holdFirstClaim(stage)
      const first = stage.open()
      await gate.reached
      first.hangUp()
      await stage.left(1)
      gate.open()
      await until('the claim is given back', async () => (await stage.records()).length === 0)
      assert.equal(stage.runs, 0)
      assert.deepEqual(stage.faults, [])
      assert.equal((await stage.ask({ body: '{"amount":2}' })).status, 201)
      assert.equal(stage.runs, 1)
    },
  ),
  // The same, while a twin waits for the answer of the client that left: the twin must not wait forever.
  httpCase(
    'lost: a twin of a client that left before its claim was granted runs in its place',
    { definition: external },
    () => done,
    async (stage) => {
      const gate = holdFirstClaim(stage)
      const first = stage.open()
      await gate.reached
      const twin = stage.open()
      await stage.came(2)
      first.hangUp()
      await stage.left(1)
      gate.open()
      const answer = await twin.reply
      assert.deepEqual([answer.status, answer.text()], [201, 'done'])
      assert.equal(stage.runs, 1)
      assertReplay(await stage.ask(), answer)
    },
  ),
  // The effect happened, although its record was not written: the client gets its answer, and the record comes later.
  httpCase(
    'lost: a store that is lost after the effect keeps no answer back, and gets its record as soon as it is there',
    { definition: external },
    (_call, stage) => {
      stage.trouble.away = true
      return done
    },
    async (stage) => {
      const first = await stage.ask()
      assert.deepEqual([first.status, first.text()], [201, 'done'])
      const early = await stage.ask()
      assert.ok(early.status === 503 || early.status === 409, early.text())
      stage.trouble.away = false
      await settled(stage)
      assertReplay(await stage.ask(), first)
      assert.equal(stage.runs, 1)
    },
  ),
  ...[1, 3].map((servers) =>
    httpCase(
      `lost: twenty twins at once ${servers === 1 ? '' : `at ${servers} servers `}are one effect and twenty equal answers`,
      { definition: external, servers },
      async () => {
        await pause(30)
        return { status: 201, headers: [['etag', '"1"']], body: { json: { id: 7 } } }
      },
      async (stage) => {
        const replies = await Promise.all(Array.from({ length: 20 }, () => stage.ask()))
        const answers = replies.map((reply) => `${reply.status} ${reply.header('etag')} ${reply.text()}`)
        assert.deepEqual([...new Set(answers)], ['201 "1" {"id":7}'])
        assert.equal(replies.filter((reply) => reply.header('idempotent-replayed') === null).length, 1)
        assert.equal(stage.runs, 1)
      },
    ),
  ),
  // A client that saw the end can rely on the record; what comes before the end does not wait for it.
  ...(['text', ...ways] as const).map((way) =>
    httpCase(
      `lost: the outcome of ${way} is recorded before its last byte is sent`,
      { definition: external },
      async (_call, stage) => {
        if (way === 'text') return done
        gateOf(stage).open()
        return as(way, () => gated(stage))
      },
      async (stage) => {
        const gate = createGate()
        stage.trouble.before = async ({ kind }) => {
          if (kind === 'settle') await gate.pass()
        }
        const first = stage.open()
        let over = false
        void first.reply.then(() => void (over = true))
        await gate.reached
        // What was written already is on its way, although the outcome is not recorded yet.
        if (way !== 'text') await first.received('middle,')
        await pause(80)
        assert.equal(over, false, 'the end came before the record')
        gate.open()
        const reply = await first.reply
        assert.ok(reply.whole)
        assert.equal(reply.text(), way === 'text' ? 'done' : 'begin,middle,end')
        assertReplay(await stage.ask(), reply)
      },
    ),
  ),
]

/** The first claim of this case waits at a gate. */
function holdFirstClaim(stage: Stage): Gate {
  const gate = createGate()
  stage.trouble.before = () => {
    delete stage.trouble.before
    return gate.pass()
  }
  return gate
}
