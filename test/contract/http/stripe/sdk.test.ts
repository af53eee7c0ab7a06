import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import Stripe from 'stripe'
import { until } from '../../../../src/testing/until.ts'
import { createProxy } from '../../../../tools/proxy/index.ts'
import { frameworks, openShop } from './shop.ts'

/** The SDK as it is installed, pointed at another host: nothing of it is replaced. */
function clientOf(port: number, options: Partial<ConstructorParameters<typeof Stripe>[1]> = {}, key = 'sk_test_acme') {
  return new Stripe(key, { host: '127.0.0.1', port, protocol: 'http', maxNetworkRetries: 0, ...options })
}

/** The error of an SDK call that must fail. */
async function failureOf(call: Promise<unknown>): Promise<Stripe.errors.StripeError> {
  const error = await call.then(
    () => assert.fail('The call was expected to fail.'),
    (thrown: unknown) => thrown,
  )
  assert.ok(error instanceof Stripe.errors.StripeError, String(error))
  return error
}

const replayed = ({ lastResponse }: Stripe.Response<unknown>) => lastResponse.headers['idempotent-replayed']
const ann = { email: 'ann@example.com', metadata: { plan: 'a+b & c/d', note: 'ü 🐘' } }

for (const framework of frameworks) {
  describe(`the Stripe SDK against ${framework}`, { concurrency: true }, () => {
    const open = (context: TestContext, whileRunning?: Parameters<typeof openShop>[2]) =>
      openShop(context, framework, whileRunning)

    for (const maxNetworkRetries of [0, 2]) {
      test(`a response that is lost after the effect, with ${maxNetworkRetries} retries: the SDK's own retry finds the same customer`, async (context) => {
        const shop = await open(context)
        await using proxy = await createProxy({ targetPort: shop.port })
        const stripe = clientOf(proxy.port, { maxNetworkRetries })
        proxy.dropNextResponse({ when: (request) => request.includes('POST /v1/customers') })
        const customer = await stripe.customers.create(ann)
        assert.deepEqual(shop.customers, [{ id: customer.id, object: 'customer', email: ann.email }])
        assert.equal(replayed(customer), 'true')
        assert.equal(shop.keys.length, 2)
        assert.match(shop.keys[0] ?? '', /^stripe-node-retry-/)
        assert.equal(shop.keys[1], shop.keys[0])
      })
    }

    test('a response that never comes: the SDK times out, retries, waits, and gets the same customer', async (context) => {
      const shop = await open(context)
      const letGo = shop.hold()
      const stripe = clientOf(shop.port, { maxNetworkRetries: 10, timeout: 1_000 })
      const creating = stripe.customers.create(ann)
      // The first request was abandoned and the second got 409 before the effect ends.
      await until('a twin was refused', () => shop.answers.includes(409))
      letGo()
      const customer = await creating
      assert.deepEqual([shop.runs, shop.customers.length], [1, 1])
      assert.equal(customer.id, shop.customers[0]?.id)
      assert.equal(replayed(customer), 'true')
      assert.equal(new Set(shop.keys).size, 1)
    })

    test('a duplicate in flight is refused with idempotency_key_in_use, and the SDK retries that by itself', async (context) => {
      const shop = await open(context)
      const letGo = shop.hold()
      const first = clientOf(shop.port).customers.create(ann, { idempotencyKey: 'twins' })
      await until('the effect began', () => shop.runs === 1)
      const refused = await failureOf(clientOf(shop.port).customers.create(ann, { idempotencyKey: 'twins' }))
      assert.ok(refused instanceof Stripe.errors.StripeAPIError)
      assert.deepEqual(
        [refused.statusCode, refused.rawType, refused.code],
        [409, 'idempotency_error', 'idempotency_key_in_use'],
      )
      const patient = clientOf(shop.port, { maxNetworkRetries: 5 }).customers.create(ann, { idempotencyKey: 'twins' })
      await until('the patient twin was refused, too', () => shop.answers.length === 2)
      letGo()
      const [original, twin] = await Promise.all([first, patient])
      assert.deepEqual(twin, original)
      assert.deepEqual([replayed(original), replayed(twin)], [undefined, 'true'])
      assert.ok(shop.keys.length >= 4, 'the SDK has asked again')
      assert.equal(shop.runs, 1)
    })

    test('a server that lets duplicates wait answers both with one customer, and neither retries', async (context) => {
      const shop = await open(context, { waitMs: 120_000 })
      const letGo = shop.hold()
      const stripe = clientOf(shop.port)
      const both = [1, 2].map(() => stripe.customers.create(ann, { idempotencyKey: 'patience' }))
      await until('both are there', () => shop.keys.length === 2)
      letGo()
      const [one, two] = await Promise.all(both)
      assert.deepEqual(two, one)
      assert.deepEqual([shop.runs, shop.keys.length], [1, 2])
    })

    test('another payload under the same key is a StripeIdempotencyError, at once and for good', async (context) => {
      const shop = await open(context)
      const stripe = clientOf(shop.port, { maxNetworkRetries: 3 })
      await stripe.customers.create(ann, { idempotencyKey: 'reused' })
      const failure = await failureOf(
        stripe.customers.create({ ...ann, email: 'bob@example.com' }, { idempotencyKey: 'reused' }),
      )
      assert.ok(failure instanceof Stripe.errors.StripeIdempotencyError)
      assert.deepEqual([failure.statusCode, failure.rawType], [400, 'idempotency_error'])
      assert.deepEqual([shop.keys.length, shop.customers.length], [2, 1])
      assert.equal(replayed(await stripe.customers.create(ann, { idempotencyKey: 'reused' })), 'true')
    })

    test('the same parameters in another order are the same request', async (context) => {
      const shop = await open(context)
      const stripe = clientOf(shop.port)
      const customer = await stripe.customers.create(ann, { idempotencyKey: 'built-anew' })
      const { email, metadata } = ann
      const again = await stripe.customers.create({ metadata, email }, { idempotencyKey: 'built-anew' })
      assert.deepEqual([again.id, replayed(again), shop.runs], [customer.id, 'true', 1])
    })

    test('a refusal and a breakdown are kept like any other answer, as Stripe does', async (context) => {
      const shop = await open(context)
      const stripe = clientOf(shop.port, { maxNetworkRetries: 1 })
      const decline = () => stripe.customers.create({ email: 'declined@example.com' }, { idempotencyKey: 'declined' })
      for (const failure of [await failureOf(decline()), await failureOf(decline())]) {
        assert.ok(failure instanceof Stripe.errors.StripeCardError)
        assert.equal(failure.message, 'Your card was declined.')
      }
      assert.equal(shop.runs, 1)
      // The SDK retries a 500 under the same key, and gets the same response again instead of a second effect.
      const broken = await failureOf(stripe.customers.create({ email: 'broken@example.com' }))
      assert.deepEqual([broken.statusCode, broken.message], [500, 'Something broke.'])
      assert.deepEqual([shop.runs, shop.keys.length], [2, 4])
    })

    test('two accounts may use one key', async (context) => {
      const shop = await open(context)
      for (const key of ['sk_test_acme', 'sk_test_zenith']) {
        const customer = await clientOf(shop.port, {}, key).customers.create(ann, { idempotencyKey: 'same' })
        assert.equal(replayed(customer), undefined)
      }
      assert.equal(shop.customers.length, 2)
    })

    describe('keys', { concurrency: true }, () => {
      for (const [name, key, again] of [
        ['bare', 'order-1', 'order-1'],
        ['quoted, and bare when it is retried', '"order-2"', 'order-2'],
        ['bare, and quoted when it is retried', 'order-3', '"order-3"'],
        ['quoted with a parameter', '"order-4";v=1', 'order-4'],
        ['with a plus and a slash', 'ab+cd/ef==', '"ab+cd/ef=="'],
        ['digits first', '0190b8a2-7c1e-7d3a', '"0190b8a2-7c1e-7d3a"'],
        ['of digits only', '20261115', '20261115'],
        ['of 255 bytes', 'k'.repeat(255), `"${'k'.repeat(255)}"`],
      ] as const) {
        test(`${name}: one effect`, async (context) => {
          const shop = await open(context)
          const stripe = clientOf(shop.port)
          const first = await stripe.customers.create(ann, { idempotencyKey: key })
          const second = await stripe.customers.create(ann, { idempotencyKey: again })
          assert.deepEqual(second, first)
          assert.deepEqual([replayed(first), replayed(second)], [undefined, 'true'])
          assert.equal(shop.runs, 1)
        })
      }

      test('that differ in a letter, a sign or an escape are different keys', async (context) => {
        const shop = await open(context)
        const stripe = clientOf(shop.port)
        const keys = ['a+b', 'a/b', 'a%2Bb', 'a%20b', 'A+B', 'a-b', 'a+b=', "'a+b'", 'ab', '0', '00', 'k'.repeat(254)]
        const made = await Promise.all(keys.map((idempotencyKey) => stripe.customers.create(ann, { idempotencyKey })))
        assert.equal(new Set(made.map(({ id }) => id)).size, keys.length)
      })

      for (const [name, key] of [
        ['of 256 bytes', 'k'.repeat(256)],
        ['quoted, of 256 bytes', `"${'k'.repeat(256)}"`],
        ['that are two', 'a, b'],
        ['with a space', 'a b'],
        ['without an end', '"a'],
        ['that are empty', '""'],
      ] as const) {
        test(`${name}: refused before anything runs`, async (context) => {
          const shop = await open(context)
          const stripe = clientOf(shop.port, { maxNetworkRetries: 2 })
          const failure = await failureOf(stripe.customers.create(ann, { idempotencyKey: key }))
          assert.ok(failure instanceof Stripe.errors.StripeIdempotencyError)
          assert.equal(failure.statusCode, 400)
          assert.deepEqual([shop.runs, shop.keys.length], [0, 1])
        })
      }
    })
  })
}
