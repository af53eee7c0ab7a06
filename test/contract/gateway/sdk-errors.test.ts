import assert from 'node:assert/strict'
import { test } from 'node:test'
import OpenAI from 'openai'
import Stripe from 'stripe'
import { openGateway } from '../../support/gateway/world.ts'
import { openWire } from './wire.ts'

/** A rule without a profile: the gateway uses its default error format. */
const rule = { method: 'POST', path: '/v1/*' } as const

test('the unchanged Stripe SDK recognizes an unknown outcome, and does not retry', async (context) => {
  const wire = await openWire(context, () => ({ finally: 'reset' }))
  const world = await openGateway(context, wire.url, [rule])
  const stripe = new Stripe('sk_test_acme', {
    host: '127.0.0.1',
    port: world.port,
    protocol: 'http',
    maxNetworkRetries: 2,
  })
  let tries = 0
  stripe.on('request', () => void tries++)
  const create = () => stripe.customers.create({ email: 'ann@example.com' }, { idempotencyKey: 'once' })
  await assert.rejects(create(), Stripe.errors.StripeError, 'the first call fails because its response was lost')
  tries = 0
  await assert.rejects(
    create(),
    (error) => error instanceof Stripe.errors.StripeError && error.code === 'outcome-unknown',
  )
  assert.deepEqual([tries, wire.requests], [1, 1])
})

test('the unchanged OpenAI SDK does not retry either', async (context) => {
  const wire = await openWire(context, () => ({ finally: 'reset' }))
  const world = await openGateway(context, wire.url, [rule])
  const openai = new OpenAI({ apiKey: 'sk-acme', baseURL: `http://127.0.0.1:${world.port}/v1`, maxRetries: 2 })
  const create = () =>
    openai.post('/charges', { body: { amount: 1 }, headers: { 'idempotency-key': 'once' }, maxRetries: 2 })
  await assert.rejects(create())
  const before = world.events.length
  await assert.rejects(create(), (error) => error instanceof OpenAI.APIError && error.code === 'outcome-unknown')
  assert.equal(wire.requests, 1)
  assert.ok(world.events.length - before <= 1, 'one request')
})
