import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../../src/testing/until.ts'
import { openCounting, openGateway } from '../../support/gateway/world.ts'

/** Numbers that are slow to bring into one form: a megabyte of them takes longer than some hundred small requests. */
const hostile = `[${'1234567890123456e1,'.repeat(220_000)}1]`

test('while a hostile body of 4 MiB is looked at, others are answered', async (context) => {
  const upstream = await openCounting(context)
  const world = await openGateway(context, upstream.url)
  const startedMs = performance.now()
  let [seenMs, longestGapMs] = [startedMs, 0]
  const timer = setInterval(() => {
    longestGapMs = Math.max(longestGapMs, performance.now() - seenMs)
    seenMs = performance.now()
  }, 1)
  context.after(() => clearInterval(timer))
  const large = world.ask({ key: 'large', body: hostile })
  await until('all of it has come', () => world.load.spooledBytes === hostile.length)
  assert.equal((await world.ask({ key: 'small' })).status, 201)
  assert.equal((await large).status, 201)
  const tookMs = performance.now() - startedMs
  assert.ok(longestGapMs < tookMs / 2, `for ${longestGapMs} of ${tookMs} ms nothing else happened`)
  const spelledInAnotherWay = hostile.replaceAll('e1', 'E+01')
  assert.equal((await world.ask({ key: 'large', body: spelledInAnotherWay })).replayed, true, 'its meaning is the same')
})

test('a large body that cannot be read is refused as a small one is, by its place', async (context) => {
  const upstream = await openCounting(context)
  const world = await openGateway(context, upstream.url)
  const broken = `["${'x'.repeat(200_000)}",]`
  const [large, small] = [await world.ask({ body: broken }), await world.ask({ body: '["x",]' })]
  assert.deepEqual([large.status, large.problem], [400, 'invalid-request'])
  assert.equal(large.body.replaceAll('200004', '5'), small.body)
  assert.equal(upstream.heads, 0)
})

test('a key in a field of a large body is found', async (context) => {
  const upstream = await openCounting(context)
  const rule = {
    method: 'POST',
    path: '/fields',
    key: 'required',
    keyFrom: { field: 'id' },
    replay: 'trusted',
    caller: 'shared',
  } as const
  const world = await openGateway(context, upstream.url, [rule])
  const body = JSON.stringify({ id: 'one', text: 'x'.repeat(200_000) })
  assert.equal((await world.ask({ path: '/fields', key: null, body })).status, 201)
  assert.equal((await world.ask({ path: '/fields', key: null, body })).replayed, true)
  assert.equal((await world.ask({ path: '/fields', key: null, body: body.replace('"id"', '"no"') })).status, 400)
})
