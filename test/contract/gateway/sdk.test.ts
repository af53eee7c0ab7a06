import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { test } from 'node:test'
import OpenAI from 'openai'
import Stripe from 'stripe'
import { createProxy } from '../../../tools/proxy/index.ts'
import type { Counting } from '../../support/gateway/world.ts'
import { guarded, openCounting, openGateway } from '../../support/gateway/world.ts'

const customers = {
  method: 'POST',
  path: '/v1/*',
  replay: 'trusted',
  profile: 'stripe',
} as const

/** A service that makes a customer of every request, and knows no keys. */
function openShop(context: TestContext, before: () => Promise<void> = async () => {}): Promise<Counting> {
  let made = 0
  return openCounting(context, async (_request, response) => {
    const id = `cus_${++made}`
    await before()
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ id, object: 'customer' }))
  })
}

const stripeAt = (port: number, options = {}) =>
  new Stripe('sk_test_acme', { host: '127.0.0.1', port, protocol: 'http', maxNetworkRetries: 2, ...options })

/** A busy machine may need more of them than the two that matter. */
const PATIENT_RETRIES = 10

/** The pause only lets the retry arrive first; when it does not, it finds the answer all the same. */
function openSoon(gate: PromiseWithResolvers<void>): void {
  setTimeout(gate.resolve, 200)
}

test('the unchanged Stripe SDK: a lost response is found again by its own retry', async (context) => {
  const shop = await openShop(context)
  const world = await openGateway(context, shop.url, [customers])
  await using proxy = await createProxy({ targetPort: world.port })
  proxy.dropNextResponse({ when: (request) => request.includes('POST /v1/customers') })
  const customer = await stripeAt(proxy.port).customers.create({ email: 'ann@example.com' })
  assert.equal(customer.id, 'cus_1')
  assert.equal(customer.lastResponse.headers['idempotent-replayed'], 'true')
  assert.equal(shop.heads, 1)
})

test('the unchanged Stripe SDK: an early retry finds its first request in flight, and waits for it', async (context) => {
  const gate = Promise.withResolvers<void>()
  const shop = await openShop(context, () => gate.promise)
  const world = await openGateway(context, shop.url, [customers])
  const stripe = stripeAt(world.port, { timeout: 600, maxNetworkRetries: PATIENT_RETRIES })
  let tries = 0
  stripe.on('request', () => {
    if (++tries === 2) openSoon(gate)
  })
  assert.equal((await stripe.customers.create({ email: 'ann@example.com' })).id, 'cus_1')
  assert.ok(tries >= 2)
  assert.equal(shop.heads, 1)
})

/** No key, the same body, and its own retries: nothing of it is changed, only its tries are counted. */
function openaiAt(port: number, timeout: number, tried: (times: number) => void = () => {}): OpenAI {
  let times = 0
  return new OpenAI({
    apiKey: 'sk-acme',
    baseURL: `http://127.0.0.1:${port}/v1`,
    timeout,
    maxRetries: PATIENT_RETRIES,
    fetch: (...asked) => {
      tried(++times)
      return fetch(...asked)
    },
  })
}

const asking = (content: string) => ({ model: 'm', messages: [{ role: 'user' as const, content }] })

test('the unchanged OpenAI SDK, which sends no key, is guarded by its content', async (context) => {
  let held: Promise<void> = Promise.resolve()
  const shop = await openShop(context, () => held)
  const world = await openGateway(context, shop.url, [{ ...guarded, ...customers, profile: 'standard' }])

  // 1. The response is lost: its retry gets what the first attempt made.
  await using proxy = await createProxy({ targetPort: world.port })
  proxy.dropNextResponse({ when: (request) => request.includes('POST /v1/chat') })
  let tries = 0
  const lost = openaiAt(proxy.port, 120_000, (times) => void (tries = times))
  assert.equal((await lost.chat.completions.create(asking('one'))).id, 'cus_1')
  assert.deepEqual([tries, shop.heads], [2, 1])
  assert.equal(shop.seen[0]?.headers['idempotency-key'], undefined)

  // 2. An early retry finds its first request in flight, and waits for it.
  const gate = Promise.withResolvers<void>()
  held = gate.promise
  const impatient = openaiAt(world.port, 800, (times) => {
    tries = times
    if (times === 2) openSoon(gate)
  })
  assert.equal((await impatient.chat.completions.create(asking('two'))).id, 'cus_2')
  assert.equal(shop.heads, 2)
  assert.ok(tries >= 2)

  // 3. Another question is another request.
  assert.equal((await impatient.chat.completions.create(asking('three'))).id, 'cus_3')
})
