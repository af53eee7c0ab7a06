import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import Stripe from 'stripe'
import { createProxy } from '../../tools/proxy/index.ts'
import type { Counting } from './world.ts'
import { openCounting, openGateway } from './world.ts'

const customers = {
  method: 'POST',
  path: '/v1/*',
  caller: { header: 'authorization' },
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

test('the unchanged Stripe SDK: its impatient retry meets its own twin in flight, and waits for it', async (context) => {
  const gate = Promise.withResolvers<void>()
  const shop = await openShop(context, () => gate.promise)
  const world = await openGateway(context, shop.url, [customers])
  const creating = stripeAt(world.port, { timeout: 600 }).customers.create({ email: 'ann@example.com' })
  setTimeout(gate.resolve, 1_000)
  assert.equal((await creating).id, 'cus_1')
  assert.equal(shop.heads, 1)
})

/** As SDKs of model providers do: no key, the same body, and a count of retries in a header. */
async function keyless(
  port: number,
  body: unknown,
  timeoutMs = 5_000,
): Promise<{ status: number; text: string; tries: number }> {
  for (let tries = 0; ; tries++) {
    try {
      const response = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          authorization: 'Bearer sk-a',
          'x-stainless-retry-count': String(tries),
        },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(timeoutMs),
      })
      const retryable = [408, 409, 429].includes(response.status) || response.status >= 500
      if (!retryable || tries === 2) return { status: response.status, text: await response.text(), tries }
    } catch (error) {
      if (tries === 2) throw error
    }
    await sleep(50)
  }
}

test('a keyless SDK is guarded by its content: a lost response, and a twin in flight', async (context) => {
  let held: Promise<void> = Promise.resolve()
  const shop = await openShop(context, () => held)
  const world = await openGateway(context, shop.url, [{ ...customers, key: 'guarded', profile: 'standard' }])
  await using proxy = await createProxy({ targetPort: world.port })
  proxy.dropNextResponse({ when: (request) => request.includes('POST /v1/chat') })
  const lost = await keyless(proxy.port, { model: 'm', messages: ['one'] })
  assert.deepEqual([lost.status, lost.tries, JSON.parse(lost.text).id, shop.heads], [200, 1, 'cus_1', 1])

  const gate = Promise.withResolvers<void>()
  held = gate.promise
  const impatient = keyless(world.port, { model: 'm', messages: ['two'] }, 300)
  setTimeout(gate.resolve, 500)
  const told = await impatient
  assert.deepEqual([told.status, JSON.parse(told.text).id, shop.heads], [200, 'cus_2', 2])
  assert.ok(told.tries >= 1)
})
