import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { until } from '../../../src/testing/until.ts'
import { freePort, startGateway } from '../../support/gateway/process.ts'
import { openCounting, openGateway, things } from '../../support/gateway/world.ts'

/** Only the first caller may see this. */
const SECRETS = /got|things\/1/

test('a gateway without rules shows a response to its own cookie only, and hides that it exists', async (context) => {
  const folder = await mkdtemp(join(tmpdir(), 'onceonly-defaults-'))
  context.after(() => rm(folder, { recursive: true, force: true }))
  const upstream = await openCounting(context)
  const gateway = await startGateway(context, folder, { config: { upstream: upstream.url }, store: 'memory' })
  const ask = (cookie: string | null, body = '{"amount":1}', key = 'key-1') =>
    gateway.ask({ path: '/pay', key, body, headers: cookie === null ? {} : { cookie } })

  assert.deepEqual([(await ask('sid=alice')).status, upstream.heads], [201, 1])
  const again = await ask('sid=alice')
  assert.deepEqual([again.status, again.body, again.replayed], [201, '{"got":12}', true])

  const refusals = []
  for (const body of ['{"amount":1}', '{"amount":2}']) {
    const { status, problem, body: text, headers } = await ask('sid=bob', body)
    assert.deepEqual([status, problem, headers.get('location')], [409, 'credential-changed', null])
    assert.doesNotMatch(text, SECRETS)
    refusals.push(text)
  }
  assert.equal(refusals[0], refusals[1], 'the refusal does not reveal whether it is the same request')
  const anonymous = await ask(null)
  // Without any credential it is another caller, whose key has nothing to do with hers.
  assert.deepEqual([anonymous.status, anonymous.replayed, upstream.heads], [201, false, 2])
  const more = await ask('sid=alice; theme=dark')
  assert.deepEqual(
    [more.status, more.problem, upstream.heads],
    [409, 'credential-changed', 2],
    'her own, and never 403',
  )
})

test('a credential in a header of any name keeps callers apart once a rule names it', async (context) => {
  const upstream = await openCounting(context)
  const { replay: _replay, ...plain } = things
  const world = await openGateway(context, upstream.url, [
    { ...plain, path: '/header', caller: { header: 'x-user' } },
    { ...plain, path: '/cookie', caller: { cookie: 'sid' } },
  ])
  for (const [path, alice, bob] of [
    ['/header', { 'x-user': 'alice' }, { 'x-user': 'bob' }],
    ['/cookie', { cookie: 'sid=alice' }, { cookie: 'sid=bob' }],
  ] as const) {
    const before = upstream.heads
    await world.ask({ path, headers: alice })
    assert.equal((await world.ask({ path, headers: { ...alice } })).replayed, true)
    const other = await world.ask({ path, headers: bob, body: '{"amount":2}' })
    assert.deepEqual([other.status, other.replayed], [201, false], 'his key is his own')
    assert.equal(upstream.heads, before + 2)
  }
  const later = await world.ask({ path: '/cookie', headers: { cookie: 'theme=dark; sid=alice' } })
  assert.equal(later.replayed, true, 'one more cookie changes nothing')
})

test('nor is it visible while the first request runs, or when its outcome is unknown', async (context) => {
  const { replay: _replay, caller: _caller, ...plain } = things
  const held: (() => void)[] = []
  const upstream = await openCounting(context, (request, response, { url }) => {
    if (url === '/broken') request.socket.destroy()
    else held.push(() => response.writeHead(201).end('done'))
  })
  const routes = ['/slow', '/broken'].map((path) => ({ ...plain, path, whileRunning: 'conflict' as const }))
  const world = await openGateway(context, upstream.url, routes)
  const ask = (path: string, cookie: string, body: string) => world.ask({ path, body, headers: { cookie } })

  const first = ask('/slow', 'sid=alice', '{"amount":1}')
  await until('it is under way', () => held.length === 1)
  assert.equal((await ask('/broken', 'sid=alice', '{"amount":1}')).status, 502)
  for (const [path, problem] of [
    ['/slow', 'request-in-progress'],
    ['/broken', 'outcome-unknown'],
  ] as const) {
    for (const body of ['{"amount":1}', '{"amount":2}']) {
      const refusal = await ask(path, 'sid=bob', body)
      assert.deepEqual([refusal.status, refusal.problem], [409, problem], `${path} ${body}`)
    }
  }
  for (const release of held) release()
  assert.equal((await first).status, 201)
  assert.equal((await ask('/slow', 'sid=alice', '{"amount":2}')).problem, 'idempotency-key-reused')
  assert.equal(upstream.heads, 2)
})

test('an upstream that cannot be reached at the start is one clear line, and no request is taken for sent', async (context) => {
  const folder = await mkdtemp(join(tmpdir(), 'onceonly-unreachable-'))
  context.after(() => rm(folder, { recursive: true, force: true }))
  const port = await freePort()
  const config = { upstream: `http://127.0.0.1:${port}/api` }
  const gateway = await startGateway(context, folder, { config, store: 'memory' })
  const reported = () => gateway.lines.filter((line) => line.startsWith('The upstream'))
  await until('the upstream is reported', () => reported().length > 0)
  assert.deepEqual(reported(), [
    `The upstream http://127.0.0.1:${port} cannot be reached: connect ECONNREFUSED 127.0.0.1:${port}. Its requests are answered with 503 until it can be reached.`,
  ])
  const { status, problem } = await gateway.ask({ path: '/pay', key: 'key-1', body: '{"amount":1}' })
  assert.deepEqual([status, problem], [503, 'upstream-unreachable'])
})
