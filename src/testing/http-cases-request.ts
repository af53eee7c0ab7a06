import assert from 'node:assert/strict'
import type { AskOptions, HttpCase } from './http-stage.ts'
import { assertProblem, assertReplay, httpCase } from './http-stage.ts'

/** Requests that cannot be understood claim nothing; those that can reach their handler whole, wherever it is mounted. */

const external = { effect: 'external' } as const
const done = () => ({ status: 201, body: { text: 'done' } })

const bad: readonly [what: string, ask: AskOptions, status: number][] = [
  ['broken JSON', { body: '{"amount":' }, 400],
  ['duplicate members', { body: '{"amount":1,"amount":2}' }, 400],
  ['bytes that are no UTF-8', { body: Buffer.from([0x22, 0xff, 0x22]) }, 400],
  ['a broken percent-encoding', { target: '/things/%zz' }, 400],
  ['a body that is too large', { body: `"${'x'.repeat(200_000)}"` }, 413],
  ['a body that is too large, without its length', { body: `"${'x'.repeat(200_000)}"`, chunked: true }, 413],
]

export const requestCases: readonly HttpCase[] = [
  ...bad.map(([what, ask, status]) =>
    httpCase(
      `request: ${what} is refused before anything is claimed`,
      { path: '/things/:id', definition: external, maxBodyBytes: 100_000 },
      done,
      async (stage) => {
        const reply = await stage.ask({ target: '/things/1', ...ask })
        // Frameworks refuse some of them by themselves, in words of their own.
        assert.equal(reply.status, status, reply.text())
        assert.equal(stage.runs, 0)
        assert.equal((await stage.records()).length, 0)
        assert.equal((await stage.ask({ target: '/things/1' })).status, 201)
      },
    ),
  ),
  httpCase(
    'request: the handler gets the body whole',
    { definition: external },
    async (call) => ({ body: { json: { got: await call.json() } } }),
    async (stage) => {
      const whole = await stage.ask({ body: '{"a":[1,"ä"]}' })
      assert.deepEqual(whole.json(), { got: { a: [1, 'ä'] } })
      const chunked = await stage.ask({ key: 'key-2', body: '{"a":[1,"ä"]}', chunked: true })
      assert.deepEqual(chunked.json(), { got: { a: [1, 'ä'] } })
    },
  ),
  httpCase(
    'request: a mounted router is known by the whole path',
    {
      mount: '/api',
      definition: external,
      others: [{ method: 'POST', path: '/things', definition: external }],
    },
    done,
    async (stage) => {
      const mounted = await stage.ask()
      assert.equal(mounted.status, 201, mounted.text())
      assertReplay(await stage.ask(), mounted)
      const other = await stage.ask({ target: '/things' })
      assert.equal(other.status, 201)
      assert.equal(other.header('idempotent-replayed'), null)
      assert.equal(stage.runs, 2)
      const operations = (await stage.records()).map(({ record }) => record.identity.operation)
      assert.deepEqual(operations.toSorted(), ['POST /api/things', 'POST /things'])
    },
  ),
  httpCase(
    'request: a path of thousands of characters is a resource of its own',
    { path: '/things/:id', definition: external },
    done,
    async (stage) => {
      const long = `/things/${'x'.repeat(3_000)}`
      const first = await stage.ask({ target: long })
      // Routers may have a limit of their own, and then there is nothing to protect.
      if (first.status === 404 || first.status === 414) return
      assert.equal(first.status, 201, first.text())
      assertReplay(await stage.ask({ target: long }), first)
      assert.equal((await stage.ask({ target: `${long}y` })).header('idempotent-replayed'), null)
    },
  ),
]

export const keepCases: readonly HttpCase[] = [
  httpCase(
    'keep: a pointer rebuilds the answer with the rights of now',
    {
      definition: {
        ...external,
        name: 'secret.make',
        keep: 'pointer',
        sensitive: true,
        authorize: ({ header }) => header('x-lost') === undefined,
        rebuild: (pointer, { header }) => ({
          status: 200,
          headers: [
            ['content-type', 'text/plain'],
            ['etag', '"now"'],
          ],
          body: Buffer.from(`${pointer.type} ${pointer.id} for ${header('x-role') ?? 'anonymous'}`),
        }),
      },
    },
    async ({ context }) => {
      await context?.attach({ type: 'thing', id: '7' })
      return { status: 201, body: { text: 'a secret' } }
    },
    async (stage) => {
      assert.equal((await stage.ask()).text(), 'a secret')
      const replay = await stage.ask({ headers: [['x-role', 'admin']] })
      assert.deepEqual([replay.status, replay.text(), replay.header('etag')], [200, 'thing 7 for admin', '"now"'])
      assert.equal(replay.header('idempotent-replayed'), 'true')
      assertProblem(await stage.ask({ headers: [['x-lost', 'yes']] }), 403, 'not-authorized')
      const [view] = await stage.records()
      const target = `/operations/${view?.record.id}`
      const status = await stage.ask({ method: 'GET', target, key: null, headers: [['x-role', 'clerk']] })
      assert.equal(status.json().result.body, 'thing 7 for clerk')
      assert.ok(!JSON.stringify(await stage.records()).includes('a secret'), 'the body is in the record')
      assert.equal(stage.runs, 1)
    },
  ),
  httpCase(
    'keep: a pointer that was never attached leaves a response that is not stored',
    {
      definition: {
        ...external,
        keep: 'pointer',
        rebuild: () => assert.fail('there is nothing to rebuild'),
      },
    },
    (_call, { runs }) => (runs === 1 ? { status: 201, body: { text: 'done' } } : { status: 404, body: { text: 'no' } }),
    async (stage) => {
      await stage.ask()
      assertProblem(await stage.ask(), 409, 'response-not-stored')
      assert.equal((await stage.ask({ key: 'key-2' })).status, 404)
      const refused = await stage.ask({ key: 'key-2' })
      assert.deepEqual([refused.status, refused.text(), refused.header('idempotent-replayed')], [404, '', 'true'])
      assert.equal(stage.runs, 2)
    },
  ),
  httpCase(
    'keep: a refusal is not rebuilt, although a pointer was attached before',
    {
      definition: {
        ...external,
        keep: 'pointer',
        rebuild: () => assert.fail('it was refused'),
      },
    },
    async ({ context }) => {
      await context?.attach({ type: 'thing', id: '7' })
      return { status: 422, body: { text: 'no' } }
    },
    async (stage) => {
      assert.equal((await stage.ask()).text(), 'no')
      const replay = await stage.ask()
      assert.deepEqual([replay.status, replay.text(), replay.header('idempotent-replayed')], [422, '', 'true'])
    },
  ),
  httpCase(
    'keep: the outcome alone replays its status and location',
    { definition: { ...external, keep: 'outcome' } },
    () => ({
      status: 201,
      headers: [
        ['location', '/things/7'],
        ['etag', '"1"'],
      ],
      body: { text: 'a secret' },
    }),
    async (stage) => {
      assert.equal((await stage.ask()).text(), 'a secret')
      const replay = await stage.ask()
      assert.deepEqual([replay.status, replay.text(), replay.header('location')], [201, '', '/things/7'])
      assert.equal(replay.header('idempotent-replayed'), 'true')
      assert.equal(replay.header('etag'), null)
      assert.ok(!JSON.stringify(await stage.records()).includes('secret'), 'the body is in the record')
      assert.equal(stage.runs, 1)
    },
  ),
]
