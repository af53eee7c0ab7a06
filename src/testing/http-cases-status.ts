import assert from 'node:assert/strict'
import { failed, succeeded } from '../ledger/granted.ts'
import type { AskOptions, HttpCase, Stage } from './http-stage.ts'
import { assertProblem, assertReplay, httpCase } from './http-stage.ts'

/** `GET /operations/{id}`, and what a retry gets after an operator resolved an outcome. */

const external = { effect: 'external' } as const

async function idOf(stage: Stage): Promise<string> {
  const [view] = await stage.records()
  assert.ok(view !== undefined)
  return view.record.id
}

async function look(stage: Stage, options: AskOptions = {}) {
  return stage.ask({ method: 'GET', target: `/operations/${await idOf(stage)}`, key: null, ...options })
}

/** The route's rule says no for a caller with this header. */
async function hidesWithHeader(stage: Stage): Promise<void> {
  await stage.ask()
  assert.equal((await look(stage)).status, 200)
  assertProblem(await look(stage, { headers: [['x-lost', 'yes']] }), 404, 'operation-not-found')
}

export const statusCases: readonly HttpCase[] = [
  httpCase(
    'status: the stored answer of a success, for its caller',
    { definition: { ...external, name: 'thing.make' } },
    () => ({ status: 201, headers: [['location', '/things/7']], body: { json: { id: 7, exact: [1, 'ä'] } } }),
    async (stage) => {
      await stage.ask()
      const id = await idOf(stage)
      const status = await look(stage)
      assert.equal(status.status, 200, status.text())
      assert.match(status.header('content-type') ?? '', /^application\/json/)
      const { result, ...rest } = status.json()
      assert.deepEqual(rest, {
        id,
        operation: 'thing.make',
        status: 'succeeded',
        links: { self: `/operations/${id}` },
      })
      assert.equal(result.status, 201)
      assert.equal(result.headers.location, '/things/7')
      assert.deepEqual(result.body, { id: 7, exact: [1, 'ä'] })
      const nothing = (reply: Awaited<ReturnType<typeof look>>) => assertProblem(reply, 404, 'operation-not-found')
      const stranger = await look(stage, { caller: 'eve' })
      nothing(stranger)
      nothing(await look(stage, { tenant: 'evil' }))
      const unknown = await look(stage, { target: `/operations/${'0'.repeat(32)}` })
      nothing(unknown)
      nothing(await look(stage, { target: '/operations/1' }))
      // A foreign operation must look like a missing one.
      assert.equal(stranger.text(), unknown.text())
    },
  ),
  httpCase(
    'status: numbers past the precision of a double, texts and bytes',
    { path: '/things/:id', definition: external },
    async (call) => {
      const { how } = (await call.json()) as { how: string }
      if (how === 'bytes') return { headers: [['content-type', 'image/png']], body: { bytes: Buffer.from([0, 255]) } }
      if (how === 'text') return { headers: [['content-type', 'text/plain; charset=utf-8']], body: { text: 'grüße' } }
      return { headers: [['content-type', 'application/json']], body: { bytes: Buffer.from('{"n":9007199254740993}') } }
    },
    async (stage) => {
      const shown = async (how: string) => {
        await stage.ask({ key: how, body: JSON.stringify({ how }), target: '/things/1' })
        const view = (await stage.records()).find(({ record }) => record.identity.key === how)
        return stage.ask({ method: 'GET', target: `/operations/${view?.record.id}`, key: null })
      }
      assert.match((await shown('json')).text(), /"body":\{"n":9007199254740993\}/)
      assert.equal((await shown('text')).json().result.body, 'grüße')
      assert.equal((await shown('bytes')).json().result.bodyBase64, 'AP8=')
    },
  ),
  httpCase(
    'status: the route is asked whether the caller may see it',
    { definition: { ...external, name: 'thing.make', authorize: ({ header }) => header('x-lost') === undefined } },
    () => ({ body: { text: 'done' } }),
    hidesWithHeader,
  ),
  httpCase(
    'status: a rule of its own is asked for routes without a name',
    {
      definition: { ...external, authorize: () => true },
      statusAuthorize: ({ header }) => header('x-lost') === undefined,
    },
    () => ({ body: { text: 'done' } }),
    hidesWithHeader,
  ),
  httpCase(
    'status: without such a rule no caller sees what an unnamed route may hide',
    { definition: { ...external, authorize: () => true } },
    () => ({ body: { text: 'a secret' } }),
    async (stage) => {
      await stage.ask()
      const status = await look(stage)
      assert.equal(status.status, 500)
      assert.ok(!status.text().includes('secret'))
    },
  ),
  httpCase(
    'status: a pointer that cannot be rebuilt is reported as a response that was not stored',
    {
      definition: { ...external, keep: 'pointer', rebuild: () => assert.fail('it may be the rule of another route') },
      others: [{ method: 'PUT', path: '/things', definition: external }],
    },
    async ({ context }) => {
      await context?.attach({ type: 'thing', id: '7' })
      return { status: 201, body: { text: 'done' } }
    },
    async (stage) => {
      await stage.ask()
      const { problem } = (await look(stage)).json()
      assert.equal(problem.type, '/problems/response-not-stored')
      assert.deepEqual(problem.original.pointer, { type: 'thing', id: '7' })
    },
  ),
  httpCase(
    'status: refusals, failures and unknown outcomes',
    { definition: { effect: 'repeatable', name: 'thing.make' } },
    (_call, { runs }) => (runs === 1 ? { status: 500 } : { status: 422, body: { json: { error: 'no' } } }),
    async (stage) => {
      await stage.ask()
      const retryable = (await look(stage)).json()
      assert.deepEqual([retryable.status, retryable.problem.status], ['failed_retryable', 409])
      assert.equal(retryable.problem.type, '/problems/retry-later')
      await stage.ask()
      const refused = (await look(stage)).json()
      assert.deepEqual([refused.status, refused.result.status], ['failed_terminal', 422])
      assert.deepEqual(refused.result.body, { error: 'no' })
    },
  ),
  httpCase(
    'status: a person resolves an unknown outcome with a value, and retries get it',
    { definition: { ...external, name: 'thing.make' } },
    () => ({ throws: new Error('boom') }),
    async (stage) => {
      await stage.ask()
      const unknown = (await look(stage)).json()
      assert.deepEqual([unknown.status, unknown.problem.type], ['unknown', '/problems/outcome-unknown'])
      const [view] = await stage.records()
      assert.ok(view !== undefined)
      await stage.ledger.resolve(view.record.identity, succeeded({ id: 7 }))
      const retry = await stage.ask()
      assert.deepEqual([retry.status, retry.json()], [200, { id: 7 }])
      assert.equal(retry.header('content-type'), 'application/json')
      assert.equal(retry.header('idempotent-replayed'), 'true')
      assert.deepEqual((await look(stage)).json().result.body, { id: 7 })
      assert.equal(stage.runs, 1)
    },
  ),
  httpCase(
    'status: a person resolves an unknown outcome as failed, or as happened without a value',
    { definition: { ...external, name: 'thing.make' } },
    () => ({ throws: new Error('boom') }),
    async (stage) => {
      await stage.ask({ key: 'bad' })
      await stage.ask({ key: 'good' })
      for (const { record } of await stage.records()) {
        const ending =
          record.identity.key === 'bad'
            ? failed(Object.assign(new Error('a person'), { code: 'NO' }))
            : succeeded(undefined)
        await stage.ledger.resolve(record.identity, ending)
      }
      const bad = await stage.ask({ key: 'bad' })
      assertProblem(bad, 409, 'request-failed')
      assert.equal(bad.json().code, 'NO')
      assertProblem(await stage.ask({ key: 'good' }), 409, 'response-not-stored')
      assert.equal(stage.runs, 2)
    },
  ),
  httpCase(
    'status: an answer of the handler can be given in its own words',
    { definition: { ...external, name: 'thing.make' } },
    () => ({ throws: new Error('boom') }),
    async (stage) => {
      await stage.ask()
      const [view] = await stage.records()
      assert.ok(view !== undefined)
      const answer = { status: 201, headers: [['location', '/things/7']], body: new TextEncoder().encode('made') }
      await stage.ledger.resolve(view.record.identity, succeeded(answer))
      const retry = await stage.ask()
      assert.deepEqual([retry.status, retry.text(), retry.header('location')], [201, 'made', '/things/7'])
      assertReplay(await stage.ask(), {
        ...retry,
        header: () => null,
        headers: retry.headers.filter(([name]) => name !== 'idempotent-replayed'),
      })
    },
  ),
  httpCase(
    'status: without the store it answers a retryable error',
    { definition: external },
    () => ({ body: { text: 'done' } }),
    async (stage) => {
      await stage.ask()
      const target = `/operations/${await idOf(stage)}`
      stage.trouble.away = true
      assertProblem(await stage.ask({ method: 'GET', target, key: null }), 503, 'store-unavailable', true)
    },
  ),
]
