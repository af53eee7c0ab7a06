import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openCounting, openGateway, things } from '../../support/gateway/world.ts'

test('a first request is forwarded once, a retry is answered from the record', async (context) => {
  const upstream = await openCounting(context)
  const world = await openGateway(context, upstream.url)
  const first = await world.ask()
  const retry = await world.ask()
  assert.deepEqual([first.status, first.body, first.replayed], [201, '{"got":12}', false])
  assert.deepEqual([retry.status, retry.body, retry.replayed], [201, '{"got":12}', true])
  assert.equal(retry.headers.get('location'), '/things/1')
  assert.equal(upstream.heads, 1)
  assert.equal(upstream.seen[0]?.headers['idempotency-key'], 'key-1')
  assert.equal(upstream.seen[0]?.headers['accept-encoding'], 'identity')
})

test('a key is required where the rule says so; another body under it is refused', async (context) => {
  const upstream = await openCounting(context)
  const world = await openGateway(context, upstream.url)
  assert.equal((await world.ask({ key: null })).problem, 'idempotency-key-missing')
  await world.ask()
  assert.equal((await world.ask({ body: '{"amount":2}' })).problem, 'idempotency-key-reused')
  assert.equal(upstream.heads, 1)
})

test('an upstream that is not there: nothing was sent, and the retry is forwarded', async (context) => {
  const upstream = await openCounting(context)
  const world = await openGateway(
    context,
    'http://127.0.0.1:1',
    [
      { ...things, upstream: 'real' },
      { ...things, path: '/away' },
    ],
    {
      upstreams: { real: upstream.url },
    },
  )
  const away = await world.ask({ path: '/away' })
  assert.deepEqual([away.status, away.problem], [503, 'upstream-unreachable'])
  assert.equal((await world.ask({ path: '/away' })).status, 503)
  assert.equal((await world.ask()).status, 201)
})

test('what a rule says of headers, tenants and sizes is what happens', async (context) => {
  const upstream = await openCounting(context, (_request, response, { url }) => {
    response.writeHead(201, { 'x-receipt': 'r-1', 'x-other': 'o-1' }).end(url === '/long' ? 'more than ten' : 'short')
  })
  const rule = { ...things, keepHeaders: ['X-Receipt'], tenant: { header: 'x-tenant' }, maxAnswerBytes: 10 }
  const world = await openGateway(context, upstream.url, [rule, { ...rule, path: '/long' }], { trustForwarded: true })
  const headers = { 'x-tenant': 'acme', 'x-forwarded-for': '6.6.6.6', 'x-forwarded-proto': 'https' }
  await world.ask({ headers })
  const retry = await world.ask({ headers })
  assert.deepEqual([retry.replayed, retry.body, retry.headers.get('x-receipt')], [true, 'short', 'r-1'])
  assert.equal(retry.headers.get('x-other'), null)
  assert.equal(
    (await world.ask({ headers: { ...headers, 'x-tenant': 'other' } })).replayed,
    false,
    'a tenant of its own',
  )
  assert.equal((await world.ask({ headers: {} })).problem, 'invalid-request', 'the caller is unknown')
  assert.equal((await world.ask({ path: '/long', headers })).body, 'more than ten')
  assert.equal((await world.ask({ path: '/long', headers })).problem, 'response-not-stored')
  assert.deepEqual(
    [upstream.heads, upstream.seen[0]?.headers['x-forwarded-for'], upstream.seen[0]?.headers['x-forwarded-proto']],
    [3, '6.6.6.6, 127.0.0.1', 'https'],
  )
})
