import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Store } from 'onceonly'
import { until } from '../../../src/testing/until.ts'
import { startGateway, temporaryFolder } from '../../support/gateway/process.ts'
import { guarded, openCounting, openGateway, things } from '../../support/gateway/world.ts'

test('the status of an operation is shown to its caller only, and never more than a replay would show', async (context) => {
  let allowed = true
  const upstream = await openCounting(context, (_request, response, { url }) =>
    url === '/me'
      ? response.writeHead(allowed ? 204 : 403).end()
      : response.writeHead(201, { 'content-type': 'text/plain' }).end('secret'),
  )
  const { replay: _trusted, ...rule } = things
  const caller = { header: 'x-user' }
  const world = await openGateway(context, upstream.url, [
    { ...rule, path: '/trusted', caller, replay: 'trusted' },
    { ...rule, path: '/bound', caller },
    { ...rule, path: '/asked', caller, authorize: { path: '/me' } },
    { ...rule, path: '/named', operation: 'thing.make', caller: 'shared', authorize: { path: '/me' } },
  ])
  const ann = { 'x-user': 'ann', authorization: 'Bearer ann' }
  const look = async (path: string, headers: Readonly<Record<string, string>> = ann) => {
    const operation = path === '/named' ? 'thing.make' : `POST ${path}`
    const { rows } = await world.ledger.list({})
    const id = rows.find(({ record }) => record.identity.operation === operation)?.record.id
    const answer = await world.ask({
      method: 'GET',
      path: `/.onceonly/operations/${id}`,
      key: null,
      body: null,
      headers,
    })
    return `${answer.status} ${answer.body.includes('secret')} ${answer.body.includes('credentials')}`
  }
  for (const path of ['/trusted', '/bound', '/asked', '/named']) await world.ask({ path, headers: ann })
  assert.deepEqual(
    [await look('/trusted'), await look('/bound'), await look('/asked'), await look('/named')],
    ['200 true false', '200 true false', '200 true false', '200 true false'],
  )
  // Another caller, other credentials, lost access: nothing, not even that it exists.
  assert.equal(await look('/trusted', { 'x-user': 'bob' }), '404 false false')
  assert.equal(await look('/bound', { ...ann, authorization: 'Bearer stolen' }), '404 false false')
  allowed = false
  assert.deepEqual([await look('/asked'), await look('/named')], ['404 false false', '404 false false'])
})

test('an operation is looked for once, however many rules there are', async (context) => {
  const upstream = await openCounting(context)
  let reads = 0
  const counted = (store: Store): Store => ({
    ...store,
    queries: new Proxy(store.queries, {
      get(queries, name, self) {
        reads++
        return Reflect.get(queries, name, self) as unknown
      },
    }),
  })
  const routes = Array.from({ length: 20 }, (_, at) => ({ ...things, path: `/things/${at}` }))
  const world = await openGateway(context, upstream.url, routes, {}, counted)
  reads = 0
  const path = `/.onceonly/operations/${'0'.repeat(32)}`
  assert.equal((await world.ask({ method: 'GET', path, key: null, body: null })).status, 404)
  assert.equal(reads, 1)
})

test("readiness and life have paths of their own; what only looks like them is the upstream's", async (context) => {
  const upstream = await openCounting(context)
  const world = await openGateway(context, upstream.url)
  const get = async (path: string) => (await world.ask({ method: 'GET', path, body: null })).body
  assert.deepEqual([await get('/.onceonly/ready'), await get('/.onceonly/live')], ['{"ready":true}', '{"live":true}'])
  assert.equal(upstream.heads, 0)
  await get('/.onceonly-not')
  await get('/ready')
  assert.equal(upstream.heads, 2)
})

test('one log line and one count for every attempt; neither has a usable secret', async (context) => {
  const folder = await temporaryFolder(context)
  const upstream = await openCounting(context)
  const { caller: _shared, ...derived } = things
  const routes = [
    { ...derived, path: '/things/:id' },
    { ...derived, path: '/content', key: 'optional' as const, content: guarded.content },
  ]
  const metricsToken = 'a token of the scraper'.replaceAll(' ', '-')
  const config = { upstream: upstream.url, routes, metricsToken }
  const gateway = await startGateway(context, folder, { config, store: join(folder, 'watched.db') })
  const headers = { authorization: 'Bearer secret-of-ann' }
  const one = { path: '/things/1?token=secret-query', key: 'secret-key', headers }
  await gateway.ask(one)
  await gateway.ask({ ...one, key: '"secret-key"' })
  await gateway.ask({ ...one, body: '{"amount":2}' })
  await gateway.ask({ ...one, path: '/things/2', key: null })
  for (let times = 0; times < 2; times++) await gateway.ask({ path: '/content', key: null, headers })
  await gateway.ask({ method: 'GET', path: '/elsewhere', key: null, body: null })
  const access = await until(
    'there is a line for every request',
    () => gateway.lines.filter((line) => line.includes('"http.access"')),
    ({ length }) => length >= 7,
  )
  const lines = access.map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>)
  assert.deepEqual(
    lines.map(({ method, path, route, status, decision }) => [method, path, route, status, decision].join(' ')),
    [
      'POST /things/1 POST /things/:id 201 first',
      'POST /things/1 POST /things/:id 201 dedup_replay',
      'POST /things/1 POST /things/:id 409 conflict',
      'POST /things/2 POST /things/:id 400 refused',
      'POST /content POST /content 201 first',
      'POST /content POST /content 201 dedup_replay',
      'GET /elsewhere  201 ',
    ],
  )
  const hashes = lines.map(({ keyHash }) => keyHash)
  assert.match(String(hashes[0]), /^[0-9a-f]{16}$/)
  assert.deepEqual(hashes, [hashes[0], hashes[0], hashes[0], null, null, null, null])
  assert.equal(lines[0]?.['caller'], 'unnamed')
  assert.equal(gateway.lines.filter((line) => line.includes('"gateway.duplicate_blocked"')).length, 1)
  const reused = gateway.lines.filter((line) => line.includes('"ledger.key_reused"')).map((line) => JSON.parse(line))
  assert.deepEqual(
    reused.map(({ level, keyHash }) => [level, keyHash]),
    [['warn', hashes[0]]],
  )
  assert.doesNotMatch(gateway.lines.join('\n'), /secret|amount/)

  const scrape = (authorization: string) =>
    gateway.ask({ method: 'GET', path: '/.onceonly/metrics', key: null, body: null, headers: { authorization } })
  assert.equal((await scrape('Bearer wrong')).status, 401)
  const { status, body } = await scrape(`Bearer ${metricsToken}`)
  assert.equal(status, 200)
  for (const line of [
    'onceonly_http_server_requests_total{operation="POST /things/:id",outcome="dedup_replay"} 1',
    'onceonly_http_server_requests_total{operation="none",outcome="none"} 1',
    'onceonly_dedup_claims_total{operation="POST /things/:id"',
    'onceonly_guard_blocked_total{operation="POST /content"',
    'onceonly_store_up 1',
  ]) {
    assert.ok(body.includes(line), `${line} in\n${body}`)
  }
  assert.doesNotMatch(body, /things\/1|secret/)
})

test('without a token the metrics are for this machine only, and not for a proxy on it', async (context) => {
  const upstream = await openCounting(context)
  const metrics = { contentType: 'text/plain', text: async () => 'a 1' }
  const world = await openGateway(context, upstream.url, [things], {}, undefined, metrics)
  const scrape = (headers = {}) =>
    world.ask({ method: 'GET', path: '/.onceonly/metrics', key: null, body: null, headers })
  assert.deepEqual([(await scrape()).status, (await scrape()).body], [200, 'a 1'])
  assert.equal((await scrape({ 'x-forwarded-for': '203.0.113.9' })).status, 403)
  assert.equal(upstream.heads, 0)
})
