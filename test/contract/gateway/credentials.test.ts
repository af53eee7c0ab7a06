import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openCounting, openGateway, things } from '../../support/gateway/world.ts'

/** As a rule is without a word about callers and replays. */
const { caller: _caller, replay: _replay, ...plain } = things

function jwt(claims: Readonly<Record<string, unknown>>, signature = 'x'): string {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  return `Bearer ${part({ alg: 'RS256' })}.${part(claims)}.${signature}`
}

const basic = (user: string, password: string) => `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
const aws = (id: string, signature: string) =>
  `AWS4-HMAC-SHA256 Credential=${id}/20261116/eu-central-1/s3/aws4_request, SignedHeaders=host, Signature=${signature}`

const renewed: Readonly<Record<string, readonly [first: string, renewed: string, caller: string]>> = {
  'a refreshed token': [
    jwt({ iss: 'https://id', sub: 'ann', exp: 1 }),
    jwt({ iss: 'https://id', sub: 'ann', exp: 2 }),
    'jwt:https://id#ann',
  ],
  'a request that was signed anew': [aws('AKIA1', 'one'), aws('AKIA1', 'two'), 'aws:AKIA1'],
  'a changed password': [basic('ann', 'one'), basic('ann', 'two'), 'basic:ann'],
  'another opaque token': ['Bearer one', 'Bearer two', 'unnamed'],
}

for (const [what, [first, second, caller]] of Object.entries(renewed)) {
  test(`${what} never executes a key twice, and gets no response of another credential`, async (context) => {
    const upstream = await openCounting(context)
    const world = await openGateway(context, upstream.url, [plain])
    assert.equal((await world.ask({ headers: { authorization: first } })).body, '{"got":12}')
    const same = await world.ask({ headers: { authorization: first } })
    assert.deepEqual([same.status, same.body, same.replayed], [201, '{"got":12}', true])
    assert.equal(same.headers.get('onceonly-credentials'), null)
    const again = await world.ask({ headers: { authorization: second } })
    assert.deepEqual([again.status, again.problem], [409, 'credential-changed'])
    const other = await world.ask({ headers: { authorization: second }, body: '{"amount":2}' })
    assert.deepEqual(other.problem, 'credential-changed', 'nor does it learn whether it is the same request')
    assert.equal(
      (await world.ask({ headers: { authorization: first }, body: '{"amount":2}' })).problem,
      'idempotency-key-reused',
    )
    assert.equal(upstream.heads, 1)
    const { rows } = await world.ledger.list({})
    assert.deepEqual(
      rows.map(({ record }) => record.identity.caller),
      [caller],
    )
    assert.doesNotMatch(JSON.stringify(rows), /Bearer|Basic|Signature/)
  })
}

test('subjects, access keys and users are callers of their own', async (context) => {
  const upstream = await openCounting(context)
  const world = await openGateway(context, upstream.url, [plain])
  const callers = [
    jwt({ iss: 'https://id', sub: 'ann' }),
    jwt({ iss: 'https://id', sub: 'bob' }),
    jwt({ iss: 'https://other', sub: 'ann' }),
    aws('AKIA1', 'one'),
    aws('AKIA2', 'one'),
    basic('ann', 'x'),
    basic('bob', 'x'),
  ]
  for (const authorization of callers) assert.equal((await world.ask({ headers: { authorization } })).replayed, false)
  assert.equal(upstream.heads, callers.length)
})

test('cookies count by what they are, not by their order, and one that a rule names counts alone', async (context) => {
  const upstream = await openCounting(context)
  const world = await openGateway(context, upstream.url, [
    { ...plain, path: '/any' },
    { ...plain, path: '/named', caller: { cookie: 'sid' } },
  ])
  const ask = (path: string, cookie: string) => world.ask({ path, headers: { cookie } })
  await ask('/any', 'a=1; sid=ann')
  assert.equal((await ask('/any', 'sid=ann; a=1')).replayed, true)
  assert.equal((await ask('/any', 'sid=bob; a=1')).problem, 'credential-changed')
  await ask('/named', 'sid=ann')
  assert.equal((await ask('/named', 'new=1; sid=ann')).replayed, true, 'one more cookie changes nothing')
  assert.equal((await ask('/named', 'sid=bob')).replayed, false)
  assert.equal((await world.ask({ path: '/named' })).problem, 'invalid-request')
  assert.equal(upstream.heads, 3)
})

test('whatever a header that proves something is called, its answer is not for others', async (context) => {
  const upstream = await openCounting(context)
  const world = await openGateway(context, upstream.url, [plain])
  const names = [
    'x-token',
    'x-session',
    'x-api-key',
    'apikey',
    'x-access-token',
    'ocp-apim-subscription-key',
    'x-auth',
    'xsid',
  ]
  for (const [at, name] of names.entries()) {
    const key = `key-${at}`
    await world.ask({ key, headers: { [name]: 'ann' } })
    const stranger = await world.ask({ key, headers: { [name]: 'eve' } })
    assert.equal(stranger.problem, 'credential-changed', name)
  }
  assert.equal(upstream.heads, names.length)
})

test('without any credential a retry is answered, whatever else differs in its head', async (context) => {
  const upstream = await openCounting(context)
  const world = await openGateway(context, upstream.url, [plain])
  await world.ask({ headers: { 'x-stainless-retry-count': '0', 'user-agent': 'one', 'x-request-id': '1' } })
  const retry = await world.ask({
    headers: { 'x-stainless-retry-count': '1', 'user-agent': 'two', 'x-request-id': '2' },
  })
  assert.deepEqual([retry.status, retry.body, retry.replayed], [201, '{"got":12}', true])
})

test('a guard separates two callers with the same content, and joins two requests of one caller', async (context) => {
  const upstream = await openCounting(context)
  const world = await openGateway(context, upstream.url, [{ ...plain, key: 'optional', content: { decideMs: 5_000 } }])
  const send = (authorization: string) => world.ask({ key: null, headers: { authorization } })
  assert.equal((await send('Bearer one')).replayed, false)
  assert.equal((await send('Bearer two')).replayed, false, 'another caller with the same content')
  assert.equal((await send('Bearer one')).replayed, true)
  assert.equal(upstream.heads, 2)
})

test('a content that came with another credential is refused without a word about a key', async (context) => {
  const upstream = await openCounting(context)
  const world = await openGateway(context, upstream.url, [{ ...plain, key: 'optional', content: { decideMs: 5_000 } }])
  const send = (authorization: string) => world.ask({ key: null, headers: { authorization } })
  await send(basic('ann', 'one'))
  const changed = await send(basic('ann', 'two'))
  assert.deepEqual([changed.status, changed.problem], [409, 'credential-changed'])
  const { title, detail } = JSON.parse(changed.body) as { readonly title: string; readonly detail: string }
  assert.deepEqual(
    [title, detail],
    [
      'The first request had another credential',
      'An identical request came with another credential, and it cannot be determined whether both belong to one caller.',
    ],
  )
})

test('a refused answer keeps its headers until it is decided what it means', async (context) => {
  let down = true
  const upstream = await openCounting(context, (_request, response) =>
    down ? response.writeHead(503, { 'retry-after': '1' }).end() : response.writeHead(201).end('made'),
  )
  const world = await openGateway(context, upstream.url, [plain])
  assert.equal((await world.ask()).status, 503)
  down = false
  assert.deepEqual([(await world.ask()).body, upstream.heads], ['made', 2], 'a maintenance window blocks no key')
})

test('statuses that a rule calls "not done" free the key, also under a guard', async (context) => {
  let broken = true
  const upstream = await openCounting(context, (_request, response) =>
    response.writeHead(broken ? 500 : 201).end(broken ? '' : 'made'),
  )
  const world = await openGateway(context, upstream.url, [
    { ...things, path: '/keyed', notDone: [500] },
    { ...things, path: '/guarded', key: 'optional', content: { decideMs: 5_000 }, notDone: [500] },
    { ...things, path: '/strict' },
  ])
  for (const [path, key] of [
    ['/keyed', 'k'],
    ['/guarded', null],
    ['/strict', 's'],
  ] as const) {
    broken = true
    assert.equal((await world.ask({ path, key })).status, 500)
    broken = false
    const again = await world.ask({ path, key })
    assert.deepEqual([again.status, again.problem], path === '/strict' ? [409, 'outcome-unknown'] : [201, null], path)
  }
})

test('a stripe profile freezes no answer about the caller or the moment', async (context) => {
  let status = 0
  const upstream = await openCounting(context, (_request, response) => response.writeHead(status).end())
  const world = await openGateway(context, upstream.url, [{ ...things, profile: 'stripe' }])
  for (const refused of [401, 408, 425, 429]) {
    status = refused
    assert.equal((await world.ask({ key: `key-${refused}` })).status, refused)
    status = 201
    assert.equal((await world.ask({ key: `key-${refused}` })).status, 201)
  }
})
