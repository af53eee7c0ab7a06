import assert from 'node:assert/strict'
import { OnceError } from '../ledger/core/errors.ts'
import type { Act, ActBody, Call } from './http-site.ts'
import type { HttpCase, Stage } from './http-stage.ts'
import { assertProblem, assertReplay, createGate, httpCase, pause, perStage } from './http-stage.ts'

/** Routes whose business writes commit together with the record of their answer, or not at all. */

const transaction = { effect: 'transaction' } as const
const done = { status: 201, headers: [['location', '/things/7']], body: { text: 'done' } } as const

async function* slowly(): AsyncGenerator<Uint8Array, undefined> {
  for (const text of ['do', 'ne']) {
    await pause(5)
    yield Buffer.from(text)
  }
}

const bodies: readonly [what: string, body: ActBody][] = [
  ['a text', { text: 'done' }],
  ['several writes', { writes: slowly }],
  ['a stream', { stream: slowly }],
]

async function writing(call: Call, stage: Stage): Promise<Act> {
  await stage.write(call, `run ${stage.runs}`)
  return done
}

/** The next commit fails, and only that. */
function failCommit(stage: Stage, error: Error): void {
  stage.trouble.beforeCommit = async () => {
    delete stage.trouble.beforeCommit
    throw error
  }
}

export const transactionCases: readonly HttpCase[] = [
  ...[1, 3].map((servers) =>
    httpCase(
      `transaction: the write and the record commit together, once for twenty twins${servers === 1 ? '' : ` at ${servers} servers`}`,
      { definition: transaction, servers },
      async (call, stage) => {
        await stage.write(call, 'row')
        await pause(20)
        return done
      },
      async (stage) => {
        const replies = await Promise.all(Array.from({ length: 20 }, () => stage.ask()))
        assert.deepEqual([...new Set(replies.map((reply) => `${reply.status} ${reply.text()}`))], ['201 done'])
        const firsts = replies.filter((reply) => reply.header('idempotent-replayed') === null)
        assert.equal(firsts.length, 1)
        assert.equal(stage.runs, 1)
        assert.deepEqual(await stage.written(), ['row'])
      },
    ),
  ),
  left(),
  ...bodies.map(([what, body]) =>
    httpCase(
      `transaction: ${what} leaves only after the commit`,
      { definition: transaction },
      async (call, stage) => {
        await stage.write(call, 'row')
        return { status: 201, body }
      },
      async (stage) => {
        const gate = createGate()
        stage.trouble.beforeCommit = gate.pass
        const first = stage.open()
        let begun = false
        void first.begun.then(() => void (begun = true))
        await gate.reached
        await pause(50)
        assert.equal(begun, false, 'a byte left before the commit')
        gate.open()
        const reply = await first.reply
        assert.deepEqual([reply.status, reply.text(), reply.whole], [201, 'done', true])
        assert.deepEqual(await stage.written(), ['row'])
        assertReplay(await stage.ask(), reply)
      },
    ),
  ),
  httpCase(
    'transaction: a refusal undoes the writes and is recorded',
    { definition: transaction },
    async (call, stage) => {
      await stage.write(call, 'row')
      return { status: 422, body: { json: { error: 'no funds' } } }
    },
    async (stage) => {
      const first = await stage.ask()
      assert.equal(first.status, 422)
      assertReplay(await stage.ask(), first)
      assert.equal(stage.runs, 1)
      assert.deepEqual(await stage.written(), [])
    },
  ),
  httpCase(
    'transaction: 401 undoes the writes and frees the key',
    { definition: transaction },
    async (call, stage) => {
      await stage.write(call, `run ${stage.runs}`)
      return stage.runs === 1 ? { status: 401 } : done
    },
    async (stage) => {
      assert.equal((await stage.ask()).status, 401)
      assert.equal((await stage.records()).length, 0)
      assert.equal((await stage.ask({ body: '{"amount":2}' })).status, 201)
      assert.deepEqual(await stage.written(), ['run 2'])
    },
  ),
  // The database rolls back after the handler has answered: its answer must not be sent.
  httpCase(
    'transaction: an answer whose commit failed is never heard, and a retry starts again',
    { definition: transaction },
    writing,
    async (stage) => {
      failCommit(stage, new OnceError('store_busy', 'deadlock', { applied: 'no' }))
      const first = await stage.ask()
      assertProblem(first, 503, 'store-unavailable', true)
      assert.equal(first.header('location'), null)
      assert.deepEqual(await stage.written(), [])
      assert.equal((await stage.records()).length, 0)
      const second = await stage.ask()
      assert.equal(second.text(), 'done')
      assertReplay(await stage.ask(), second)
      assert.deepEqual(await stage.written(), ['run 2'])
    },
  ),
  // The store is gone in the moment of the commit, and stays away.
  httpCase(
    'transaction: a store that is lost at the commit is reported, and nothing happened',
    { definition: transaction },
    (call, stage) => {
      stage.trouble.away = stage.runs === 1
      return writing(call, stage)
    },
    async (stage) => {
      const first = await stage.ask()
      assertProblem(first, 503, 'store-unavailable', true)
      assert.equal(first.header('location'), null)
      stage.trouble.away = false
      assert.deepEqual(await stage.written(), [])
      assert.equal((await stage.ask()).text(), 'done')
      assert.deepEqual(await stage.written(), ['run 2'])
    },
  ),
  httpCase(
    'transaction: a constraint that fails at the commit is reported as a server error',
    { definition: transaction },
    writing,
    async (stage) => {
      failCommit(stage, new Error('deferred constraint'))
      const first = await stage.ask()
      assertProblem(first, 500, 'not-committed')
      assert.equal((stage.faults[0] as Error).message, 'deferred constraint')
      assert.ok(!first.text().includes('deferred'), 'the reason is for the log')
      assert.deepEqual(await stage.written(), [])
      assert.equal((await stage.ask()).text(), 'done')
      assert.deepEqual(await stage.written(), ['run 2'])
    },
  ),
  httpCase(
    'transaction: a nested operation of the ledger joins it',
    { definition: transaction },
    async (call, stage) => {
      await stage.write(call, 'outer')
      const inner = stage.ledger.operation({ name: `inner-${stage.runs}`, effect: 'transaction' })
      const value = await inner.run({ tenant: 't', caller: 'c', key: 'k' }, null, async ({ tx }) => {
        // The very same transaction: its writes are seen, and are undone with it.
        assert.ok(tx !== undefined)
        return 'joined'
      })
      return stage.runs === 1 ? { status: 500, body: { text: value } } : { status: 201, body: { text: value } }
    },
    async (stage) => {
      const failed = await stage.ask()
      assert.deepEqual([failed.status, failed.text()], [500, 'joined'])
      assert.deepEqual(await stage.written(), [])
      assert.equal(await stage.ledger.get({ tenant: 't', caller: 'c', operation: 'inner-1', key: 'k' }), null)
      const second = await stage.ask()
      assert.equal(second.text(), 'joined', second.text())
      assert.deepEqual(await stage.written(), ['outer'])
      const inner = { tenant: 't', caller: 'c', operation: 'inner-2', key: 'k' }
      assert.equal((await stage.ledger.get(inner))?.record.state, 'succeeded')
      await stage.ledger.forget(inner)
    },
  ),
  httpCase(
    'transaction: 3 MB commit, pass whole and are not kept',
    { definition: transaction },
    async (call, stage) => {
      await stage.write(call, 'row')
      return { body: { bytes: Buffer.alloc(3 * 1_024 * 1_024, 'x') } }
    },
    async (stage) => {
      const first = await stage.ask()
      assert.ok(first.whole)
      assert.equal(first.body.length, 3 * 1_024 * 1_024)
      assertProblem(await stage.ask(), 409, 'response-not-stored')
      assert.deepEqual(await stage.written(), ['row'])
    },
  ),
]

function left(): HttpCase {
  const gateOf = perStage(createGate)
  return httpCase(
    'transaction: a client that dies while the handler runs does not undo it',
    { definition: transaction },
    async (call, stage) => {
      await stage.write(call, 'row')
      await gateOf(stage).pass()
      return done
    },
    async (stage) => {
      const first = stage.open()
      await gateOf(stage).reached
      first.hangUp()
      await pause(30)
      gateOf(stage).open()
      const retry = await stage.ask()
      assert.deepEqual([retry.status, retry.text(), retry.header('idempotent-replayed')], [201, 'done', 'true'])
      assert.deepEqual(await stage.written(), ['row'])
      assert.equal(stage.runs, 1)
    },
  )
}
