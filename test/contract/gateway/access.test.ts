import assert from 'node:assert/strict'
import { test } from 'node:test'
import { guarded, openCounting, openGateway, things } from '../../support/gateway/world.ts'

test('401, 403 and 404 are never final, under a key or without one, whatever the profile', async (context) => {
  const upstream = await openCounting(context, (_request, response, { headers }) => {
    response.writeHead(Number(headers['x-status'])).end('no')
  })
  const world = await openGateway(context, upstream.url, [
    things,
    { ...guarded, path: '/guarded' },
    { ...things, path: '/stripe', profile: 'stripe' },
  ])
  let forwards = 0
  for (const path of ['/things', '/guarded', '/stripe']) {
    for (const status of [401, 403, 404]) {
      const ask = { path, key: path === '/guarded' ? null : `k-${status}`, headers: { 'x-status': String(status) } }
      assert.equal((await world.ask(ask)).status, status)
      const again = await world.ask({ ...ask, headers: { 'x-status': '201' } })
      assert.deepEqual([again.status, again.replayed], [201, false])
      forwards += 2
      if (path === '/guarded') await world.advance(16 * 60_000)
    }
  }
  assert.equal(upstream.heads, forwards)
})

test('without `authorize` and without trust a retry is answered under the same credentials only', async (context) => {
  const upstream = await openCounting(context)
  const { replay: _trusted, ...rule } = things
  const world = await openGateway(context, upstream.url, [{ ...rule, caller: { header: 'x-user' } }])
  const headers = { 'x-user': 'ann', authorization: 'Bearer one' }
  const first = await world.ask({ headers })
  assert.equal(first.body, '{"got":12}')
  const retry = await world.ask({ headers })
  assert.deepEqual([retry.status, retry.body, retry.replayed], [201, '{"got":12}', true])
  assert.equal(retry.headers.get('location'), '/things/1')
  assert.equal(retry.headers.get('onceonly-credentials'), null)
  const revoked = await world.ask({ headers: { ...headers, authorization: 'Bearer two' } })
  assert.deepEqual([revoked.status, revoked.problem], [409, 'credential-changed'])
  assert.equal(upstream.heads, 1)
  const records = JSON.stringify(await world.ledger.list({}))
  assert.doesNotMatch(records, /Bearer/, 'no credential is kept')
})

test('`authorize` calls the upstream with the headers of the retry: a revoked caller sees nothing', async (context) => {
  let revoked = false
  const upstream = await openCounting(context, (_request, response, { url, headers }) => {
    if (url !== '/me') return response.writeHead(201).end('made')
    assert.equal(headers['idempotency-key'], undefined)
    assert.equal(headers['x-original-uri'], '/things')
    return response.writeHead(revoked || headers.authorization !== 'Bearer ann' ? 403 : 204).end()
  })
  const { replay: _trusted, ...rule } = things
  const world = await openGateway(context, upstream.url, [
    { ...rule, caller: { header: 'x-user' }, authorize: { path: '/me' } },
  ])
  const headers = { 'x-user': 'ann', authorization: 'Bearer ann' }
  await world.ask({ headers })
  assert.deepEqual([(await world.ask({ headers })).body, upstream.heads], ['made', 2])
  const stolen = await world.ask({ headers: { ...headers, authorization: 'Bearer eve' } })
  assert.deepEqual([stolen.status, stolen.problem], [403, 'not-authorized'])
  revoked = true
  assert.equal((await world.ask({ headers })).status, 403)
  const things1 = upstream.seen.filter(({ url }) => url === '/things')
  assert.equal(things1.length, 1)
})

function token(sub: string, more = ''): string {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  return `Bearer ${part({ alg: 'none' })}.${part({ sub, more })}.x`
}

test('callers come from a header, a claim, or are one; credentials are stored as digests', async (context) => {
  const upstream = await openCounting(context)
  const world = await openGateway(context, upstream.url, [
    { ...things, path: '/claim', caller: { claim: 'sub' } },
    { ...things, path: '/key', caller: { header: 'X-Api-Key' } },
    { ...things, path: '/loose', caller: { header: 'x-api-key', anonymous: true } },
  ])
  const claim = (authorization: string) => world.ask({ path: '/claim', headers: { authorization } })
  await claim(token('ann', 'old'))
  assert.equal((await claim(token('ann', 'refreshed'))).replayed, true, 'a refreshed token is the same caller')
  assert.equal((await claim(token('bob'))).replayed, false)
  assert.equal((await claim('Bearer opaque')).problem, 'invalid-request')
  assert.equal((await world.ask({ path: '/claim' })).problem, 'invalid-request')
  await world.ask({ path: '/key', headers: { 'x-api-key': 'sk_live_1' } })
  await world.ask({ path: '/loose' })
  assert.equal((await world.ask({ path: '/loose' })).replayed, true)
  const { rows } = await world.ledger.list({})
  const callers = rows.map(({ record }) => record.identity.caller).toSorted()
  assert.deepEqual([callers[0], callers[1], callers[2]], ['ann', 'anonymous', 'bob'])
  assert.match(callers[3] ?? '', /^sha256:[0-9a-f]{32}$/)
})

test('what a configuration says of tenants, kept headers, sizes and proxies is what happens', async (context) => {
  const upstream = await openCounting(context, (_request, response, { headers }) => {
    const body = 'x'.repeat(Number(headers['x-size'] ?? 1))
    response.writeHead(201, { 'x-made-by': 'robot', 'x-trace': 'this one' }).end(body)
  })
  const rule = { ...things, keepHeaders: ['X-Made-By'], maxAnswerBytes: 100 }
  const world = await openGateway(
    context,
    upstream.url,
    [
      { ...rule, tenant: { header: 'x-tenant' } },
      { ...rule, path: '/claim', tenant: { claim: 'sub' } },
    ],
    { trustForwarded: true },
  )
  const forwarded = { 'x-forwarded-for': '9.9.9.9', 'x-forwarded-proto': 'https', 'x-forwarded-host': 'shop' }
  const one = { headers: { 'x-tenant': 'one', ...forwarded } }
  await world.ask(one)
  const sent = upstream.seen[0]?.headers ?? {}
  assert.deepEqual(
    ['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host'].map((name) => sent[name]),
    ['9.9.9.9, 127.0.0.1', 'https', 'shop'],
  )
  const retry = await world.ask(one)
  assert.deepEqual([retry.headers.get('x-made-by'), retry.headers.get('x-trace')], ['robot', null])

  assert.equal((await world.ask({ headers: { 'x-tenant': 'two' } })).replayed, false, 'another tenant, another key')
  assert.equal((await world.ask()).problem, 'invalid-request', 'an empty tenant is refused')
  await world.ask({ path: '/claim', headers: { authorization: token('three') } })
  const tenants = (await world.ledger.list({})).rows.map(({ record }) => record.identity.tenant)
  assert.deepEqual(tenants.toSorted(), ['one', 'three', 'two'])

  const large = { key: 'large', headers: { 'x-tenant': 'one', 'x-size': '101' } }
  assert.equal((await world.ask(large)).body.length, 101, 'the first is answered whole')
  const again = await world.ask(large)
  assert.deepEqual([again.status, again.problem], [409, 'response-not-stored'])
})
