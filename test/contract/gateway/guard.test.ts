import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Store } from 'onceonly'
import { createFaultyStore } from 'onceonly/testing'
import { until } from '../../../src/testing/until.ts'
import { guarded, holdDeadlines, openCounting, openGateway } from '../../support/gateway/world.ts'

/** Where tests hold deadlines, those of this length. */
const DEADLINE_MS = 600

test('without a key the same content is forwarded once, for its window', async (context) => {
  const upstream = await openCounting(context)
  const world = await openGateway(context, upstream.url, [guarded])
  const keyless = (body = '{"a":1,"b":2}', headers = {}) => world.ask({ key: null, body, headers })
  assert.equal((await keyless()).replayed, false)
  const again = await keyless('{ "b": 2, "a": 1 }')
  assert.deepEqual([again.replayed, again.status, again.body], [true, 201, '{"got":13}'])
  assert.equal((await keyless('{"a":1,"b":3}')).replayed, false)
  assert.equal((await world.ask({ key: 'own', body: '{"a":1,"b":2}' })).replayed, false, 'a key decides alone')
  assert.equal(upstream.heads, 3)
  await world.advance(15 * 60_000 + 1)
  // Not the first one, whose replay was remembered for a second of real time.
  assert.equal((await keyless('{"a":1,"b":3}')).replayed, false, 'after the window it is a new request')
})

test('a condition is part of what is asked for', async (context) => {
  const upstream = await openCounting(context)
  const world = await openGateway(context, upstream.url, [{ ...guarded, method: 'PUT' }])
  const put = (headers: Record<string, string>) => world.ask({ method: 'PUT', key: null, headers })
  for (const headers of [{ 'if-match': '"1"' }, { 'if-match': '"2"' }, { 'if-none-match': '"1"' }]) {
    const [first, retry] = [await put(headers), await put(headers)]
    assert.deepEqual([first.status, first.replayed, retry.status, retry.replayed], [201, false, 201, true])
  }
  assert.equal(upstream.heads, 3)
})

test('a duplicate in flight waits, and gets the response of the first', async (context) => {
  const gate = Promise.withResolvers<void>()
  const upstream = await openCounting(context, async (_request, response) => {
    await gate.promise
    response.writeHead(201).end('one')
  })
  const world = await openGateway(context, upstream.url, [guarded])
  const twins = [1, 2, 3].map(() => world.ask({ key: null }))
  await until('the upstream has the first request', () => upstream.heads > 0)
  gate.resolve()
  const answers = await Promise.all(twins)
  assert.deepEqual(
    answers.map(({ status, body }) => [status, body]),
    Array(3).fill([201, 'one']),
  )
  assert.equal(upstream.heads, 1)
})

test('any refusal of the upstream frees the content; what is unknown does not', async (context) => {
  let status = 422
  const upstream = await openCounting(context, (_request, response) => {
    if (status === 0) return response.destroy()
    return response.writeHead(status).end()
  })
  const world = await openGateway(context, upstream.url, [guarded])
  assert.equal((await world.ask({ key: null })).status, 422)
  assert.equal((await world.ask({ key: null })).status, 422)
  assert.equal(upstream.heads, 2)
  status = 0
  assert.equal((await world.ask({ key: null })).problem, 'upstream-broken')
  status = 201
  assert.equal((await world.ask({ key: null })).problem, 'outcome-unknown')
  assert.equal(upstream.heads, 3)
})

test('an upstream that honours keys is given one for content that has none', async (context) => {
  let broken = true
  const upstream = await openCounting(context, (_request, response) => {
    if (broken) response.destroy()
    else response.writeHead(201).end()
    broken = false
  })
  const world = await openGateway(context, upstream.url, [{ ...guarded, honoursKeys: true }])
  assert.equal((await world.ask({ key: null })).status, 201)
  const [one, two] = upstream.seen.map(({ headers }) => headers['idempotency-key'])
  assert.match(String(one), /^[0-9a-f]{32}$/)
  assert.equal(one, two)
})

test('without a store a guard lets requests pass, unless configured to refuse; a key is never accepted without one', async (context) => {
  const upstream = await openCounting(context)
  let away = true
  const world = await openGateway(
    context,
    upstream.url,
    [guarded, { ...guarded, path: '/closed', content: { ...guarded.content, onStoreDown: 'closed' } }],
    {},
    (store) => createFaultyStore(store, { script: () => (away ? 'refused' : undefined) }),
  )
  assert.equal((await world.ask({ key: null })).status, 201)
  assert.equal((await world.ask({ key: null })).status, 201)
  assert.deepEqual([upstream.heads, upstream.seen[0]?.body], [2, '{"amount":1}'])
  assert.equal((await world.ask({ path: '/closed', key: null })).problem, 'store-unavailable')
  assert.equal((await world.ask()).problem, 'store-unavailable')
  assert.equal(upstream.heads, 2)
  away = false
  await world.ask({ key: null })
  assert.equal((await world.ask({ key: null })).replayed, true, 'guarded again, without a restart')
  assert.equal(upstream.heads, 3)
})

test('a store that stays away is not asked for every request; what this process knows still counts', async (context) => {
  const gate = Promise.withResolvers<void>()
  const upstream = await openCounting(context, async (_request, response, { body }) => {
    if (body === '"held"') await gate.promise
    response.writeHead(201).end(body)
  })
  let away = false
  let asked = 0
  const refusing = (store: Store) =>
    createFaultyStore(store, {
      script: ({ request }) => {
        if (!away) return undefined
        if (request?.kind === 'claim') asked += 1
        return 'refused'
      },
    })
  // A request that joins a running twin sets this deadline in the moment in which it joins.
  const joins = holdDeadlines(DEADLINE_MS)
  const routes = [{ ...guarded, content: { ...guarded.content, waitMs: DEADLINE_MS } }]
  const world = await openGateway(context, upstream.url, routes, {}, refusing, undefined, joins.runtime)
  const keyless = (body: string) => world.ask({ key: null, body })
  const held = keyless('"held"')
  await until('the upstream has the first request', () => upstream.heads > 0)
  away = true
  for (let at = 0; at < 5; at++) assert.equal((await keyless(`"${at}"`)).status, 201)
  const before = asked
  assert.ok(before >= 5)
  const answers = await Promise.all([1, 2, 3].map((at) => keyless(`"later ${at}"`)))
  assert.deepEqual(
    answers.map(({ status }) => status),
    [201, 201, 201],
  )
  assert.equal(asked, before, 'the store is not called, and no request waits for it')
  assert.equal(joins.set, 0)
  const twin = keyless('"held"')
  // Not only taken in: one that begins after the first has ended would be passed on, because the circuit is open.
  await until('the twin waits for the first', () => joins.set === 1)
  away = false
  gate.resolve()
  assert.deepEqual([(await held).status, (await twin).body], [201, '"held"'])
  assert.equal(upstream.seen.filter(({ body }) => body === '"held"').length, 1, 'nothing is sent beside what runs here')
})

for (const isBack of [false, true]) {
  const store = isBack ? 'is back' : 'is still away'
  test(`while the store is not asked, what ended here is not sent again: the store ${store}`, async (context) => {
    const gate = Promise.withResolvers<void>()
    const upstream = await openCounting(context, async (_request, response, { body }) => {
      if (body === '"held"') await gate.promise
      response.writeHead(201).end(body)
    })
    let away = false
    const refusing = (given: Store) => createFaultyStore(given, { script: () => (away ? 'refused' : undefined) })
    const routes = [{ ...guarded, content: { ...guarded.content, decideMs: DEADLINE_MS } }]
    const { runtime } = holdDeadlines(DEADLINE_MS)
    const world = await openGateway(context, upstream.url, routes, {}, refusing, undefined, runtime)
    const keyless = (body: string) => world.ask({ key: null, body })
    const held = keyless('"held"')
    await until('the upstream has the first request', () => upstream.heads > 0)
    away = true
    for (let at = 0; at < 5; at++) assert.equal((await keyless(`"${at}"`)).status, 201)
    // It ends while the circuit is open, so that the twin finds neither a running original nor a store that is asked.
    if (isBack) away = false
    gate.resolve()
    assert.equal((await held).status, 201)
    const twin = await keyless('"held"')
    assert.deepEqual([twin.status, twin.body, twin.replayed], [201, '"held"', true])
    assert.equal(upstream.seen.filter(({ body }) => body === '"held"').length, 1)
    away = false
  })
}

test('a store that hangs keeps a request without a key for the deadline of its guard, and no longer', async (context) => {
  const upstream = await openCounting(context)
  const gate = Promise.withResolvers<void>()
  const deadlines = holdDeadlines(DEADLINE_MS)
  const routes = [
    { ...guarded, content: { decideMs: DEADLINE_MS } },
    { ...guarded, path: '/closed', content: { decideMs: DEADLINE_MS, onStoreDown: 'closed' as const } },
  ]
  const stalling = (store: Store) => createFaultyStore(store, { script: () => 'none', delay: () => gate.promise })
  const { runtime } = deadlines
  const world = await openGateway(context, upstream.url, routes, {}, stalling, undefined, runtime)
  // Duplicates, too: the second one waits for the claim of the first, not for its response.
  const twins = [1, 2].map(() => world.ask({ key: null }))
  const closed = world.ask({ path: '/closed', key: null })
  await until('all three wait for the store', () => deadlines.set === 3)
  assert.deepEqual([upstream.heads, deadlines.left], [0, 3])
  // The store answers only after all three are answered: a request that waited longer would wait forever.
  deadlines.pass()
  assert.deepEqual(
    (await Promise.all(twins)).map(({ status, body, replayed }) => [status, body, replayed]),
    Array(2).fill([201, '{"got":12}', false]),
  )
  assert.equal((await closed).problem, 'store-unavailable')
  assert.deepEqual(
    world.events.flatMap((event) => (event.kind === 'guard' ? [event.what] : [])),
    ['error', 'error', 'error'],
  )
  assert.equal(upstream.heads, 2)

  // Claims that were granted too late are given back, so that they block no other request.
  gate.resolve()
  await until(
    'the claims are given back',
    () => world.ask({ key: null }),
    ({ problem }) => problem !== 'request-in-progress',
  )
  assert.equal((await world.ask({ key: null })).replayed, true, 'guarded again, without a restart')
  assert.equal(upstream.heads, 3)
})

test('a store that hangs once a request is under way does not keep its answer', async (context) => {
  let stalled = Promise.resolve()
  const gate = Promise.withResolvers<void>()
  const upstream = await openCounting(context, (_request, response) => {
    stalled = gate.promise
    response.writeHead(201).end('one')
  })
  const routes = [{ ...guarded, content: { decideMs: DEADLINE_MS } }]
  const stalling = (store: Store) => createFaultyStore(store, { script: () => 'none', delay: () => stalled })
  const { runtime } = holdDeadlines(DEADLINE_MS)
  const world = await openGateway(context, upstream.url, routes, {}, stalling, undefined, runtime)
  // The store hangs until this is answered, so that an answer that waited for it would never come.
  assert.equal((await world.ask({ key: null })).body, 'one')
  stalled = Promise.resolve()
  gate.resolve()
  const again = await world.ask({ key: null })
  assert.deepEqual([again.body, again.replayed, upstream.heads], ['one', true, 1], 'it was recorded behind it')
})

test('a duplicate at another gateway is waited for beyond the deadline of the guard', async (context) => {
  const gate = Promise.withResolvers<void>()
  const upstream = await openCounting(context, async (_request, response) => {
    await gate.promise
    response.writeHead(201).end('one')
  })
  const routes = [{ ...guarded, content: { decideMs: DEADLINE_MS } }]
  const deadlines = holdDeadlines(DEADLINE_MS)
  const { runtime } = deadlines
  let shared: Store | undefined
  // A store that decides at once needs no deadline.
  const keep = (store: Store) => (shared = createFaultyStore(store, { script: () => 'none' }))
  const share = (store: Store) => shared ?? store
  const first = await openGateway(context, upstream.url, routes, {}, keep, undefined, runtime)
  const second = await openGateway(context, upstream.url, routes, {}, share, undefined, runtime)
  const twins = [first.ask({ key: null })]
  await until('the upstream has the first request', () => upstream.heads > 0)
  twins.push(second.ask({ key: null }), second.ask({ key: null }), first.ask({ key: null }))
  await until('every twin knows that another one runs', () => deadlines.set === 4 && deadlines.left === 0)
  gate.resolve()
  assert.deepEqual(
    (await Promise.all(twins)).map(({ status, body }) => [status, body]),
    Array(4).fill([201, 'one']),
  )
  assert.equal(upstream.heads, 1)
  assert.deepEqual(
    [...first.events, ...second.events].filter((event) => event.kind === 'guard' && event.what === 'error'),
    [],
  )
})
