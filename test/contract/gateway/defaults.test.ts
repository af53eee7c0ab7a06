import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { until } from '../../../src/testing/until.ts'
import { startGateway } from '../../support/gateway/process.ts'
import { openCounting, openGateway, things } from '../../support/gateway/world.ts'

/** Nothing of this may be told to anybody but the first. */
const SECRETS = /got|things\/1/

test('a gateway without rules shows an answer to its own cookie only, and tells nobody else about it', async (context) => {
  const folder = await mkdtemp(join(tmpdir(), 'onceonly-defaults-'))
  context.after(() => rm(folder, { recursive: true, force: true }))
  const upstream = await openCounting(context)
  const gateway = await startGateway(context, folder, { config: { upstream: upstream.url }, store: 'memory' })
  const ask = (cookie: string | null, body = '{"amount":1}', key = 'key-1') =>
    gateway.ask({ path: '/pay', key, body, headers: cookie === null ? {} : { cookie } })

  assert.deepEqual([(await ask('sid=alice')).status, upstream.heads], [201, 1])
  const again = await ask('sid=alice')
  assert.deepEqual([again.status, again.body, again.replayed], [201, '{"got":12}', true])

  const told = []
  for (const body of ['{"amount":1}', '{"amount":2}']) {
    const { status, problem, body: text, headers } = await ask('sid=bob', body)
    assert.deepEqual([status, problem, headers.get('location')], [409, 'credential-changed', null])
    assert.doesNotMatch(text, SECRETS)
    told.push(text)
  }
  assert.equal(told[0], told[1], 'whether it is the same request is not to be seen')
  const nobody = await ask(null)
  // Without any credential it is another caller, whose key has nothing to do with hers.
  assert.deepEqual([nobody.status, nobody.replayed, upstream.heads], [201, false, 2])
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

test('nor is it to be seen while the first request runs, or when nobody knows what became of it', async (context) => {
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
      const told = await ask(path, 'sid=bob', body)
      assert.deepEqual([told.status, told.problem], [409, problem], `${path} ${body}`)
    }
  }
  for (const release of held) release()
  assert.equal((await first).status, 201)
  assert.equal((await ask('/slow', 'sid=alice', '{"amount":2}')).problem, 'idempotency-key-reused')
  assert.equal(upstream.heads, 2)
})
