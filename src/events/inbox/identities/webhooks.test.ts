import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { describe, test } from 'node:test'
import Stripe from 'stripe'
import { isOnceError } from '../../../ledger/core/errors.ts'
import { readGithubWebhook } from './github.ts'
import type { HookRequest } from './request.ts'
import { readStandardWebhook } from './standard-webhooks.ts'
import { readStripeWebhook, stripeFingerprint } from './stripe.ts'

const hmac = (key: string | Uint8Array, content: string, form: 'hex' | 'base64') =>
  createHmac('sha256', key).update(content).digest(form)

/** Refused with this code, naming this part. */
function refuses(code: 'unreadable_message' | 'bad_signature' | 'bad_option', part: string, read: () => unknown): void {
  assert.throws(read, (error) => {
    assert.ok(isOnceError(error, code), String(error))
    return error.details['part'] === part || error.details['option'] === part
  })
}

describe('Standard Webhooks', () => {
  // The example of the specification itself.
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
  const timestamp = '1614265330'
  const now = Number(timestamp) * 1_000
  const request = (headers: Record<string, string> = {}, body: string | Uint8Array = '{"test": 2432232314}') => ({
    headers: {
      'Webhook-Id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'Webhook-Timestamp': timestamp,
      'Webhook-Signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
      ...headers,
    },
    body,
  })

  test('a signed message is read, with the id that its retries share', () => {
    const message = readStandardWebhook(request(), { secrets: secret, now, topic: 'clerk' })
    assert.deepEqual(
      [message.id, message.topic, message.body],
      ['msg_p5jXN8AQM9LWM0D4loKWxJek', 'clerk', '{"test": 2432232314}'],
    )
    assert.deepEqual([message.deliveries, message.sequence, message.key], [null, null, null])
    const bytes = new TextEncoder().encode('{"test": 2432232314}')
    assert.equal(readStandardWebhook(request({}, bytes), { secrets: secret, now }).id, message.id)
    const web = { headers: new Headers(request().headers), body: request().body }
    assert.equal(readStandardWebhook(web, { secrets: secret, now }).id, message.id)
  })

  test('one of several signatures and secrets is enough', () => {
    const [, good] = request().headers['Webhook-Signature'].split(',')
    const other = hmac('x', 'y', 'base64')
    const header = `v1a,abc v1,${other} v1,${good}`
    const secrets = [`whsec_${Buffer.from('old').toString('base64')}`, secret]
    readStandardWebhook(request({ 'Webhook-Signature': header }), { secrets, now })
  })

  test('a changed body or a foreign signature is refused', () => {
    const read = (changed: HookRequest, options = {}) =>
      readStandardWebhook(changed, { secrets: secret, now, ...options })
    refuses('bad_signature', 'webhook-signature', () => read(request({}, '{"test": 2432232315}')))
    refuses('bad_signature', 'webhook-signature', () => read(request({ 'Webhook-Id': 'msg_other' })))
    refuses('bad_signature', 'webhook-signature', () => read(request({ 'Webhook-Timestamp': '1614265331' })))
    refuses('bad_signature', 'webhook-signature', () => read(request(), { secrets: 'whsec_b3RoZXI=' }))
    for (const header of ['v1', 'v1,', 'v2,abc', 'v1,g0hM9SsE', 'v1a,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=']) {
      refuses('bad_signature', 'webhook-signature', () => read(request({ 'Webhook-Signature': header })))
    }
  })

  test('what is too old or too far ahead is refused', () => {
    const at = (time: number) => () => readStandardWebhook(request(), { secrets: secret, now: time })
    at(now + 300_000)()
    at(now - 300_000)()
    refuses('bad_signature', 'webhook-timestamp', at(now + 301_000))
    refuses('bad_signature', 'webhook-timestamp', at(now - 301_000))
    for (const toleranceMs of [Number.NaN, -1, Number('5m')]) {
      const options = { secrets: secret, now: now + 301_000, toleranceMs }
      refuses('bad_option', 'toleranceMs', () => readStandardWebhook(request(), options))
    }
    refuses('bad_option', 'now', () => readStandardWebhook(request(), { secrets: secret, now: Number.NaN }))
    const key = Buffer.from(secret.slice(6), 'base64')
    const odd = { 'Webhook-Timestamp': '1e9', 'Webhook-Signature': `v1,${hmac(key, 'msg.1e9.{}', 'base64')}` }
    refuses('bad_signature', 'webhook-timestamp', () =>
      readStandardWebhook(request({ 'Webhook-Id': 'msg', ...odd }, '{}'), { secrets: secret, now }),
    )
  })

  test('missing and doubled headers, and secrets that are none, are named', () => {
    for (const name of ['Webhook-Id', 'Webhook-Timestamp', 'Webhook-Signature']) {
      const options = { secrets: secret, now }
      refuses('unreadable_message', name.toLowerCase(), () => readStandardWebhook(request({ [name]: ' ' }), options))
      const doubled = { headers: { ...request().headers, [name]: ['a', 'b'] }, body: '' }
      refuses('unreadable_message', name.toLowerCase(), () => readStandardWebhook(doubled, options))
    }
    // One character is base64 of nothing, and anyone could sign with an empty key.
    for (const secrets of ['', [], 'whsec_', 'whsec_%%%', 'whsec_A', 'A', 'whsec_====', [secret, 'whsec_A']]) {
      refuses('bad_option', 'secrets', () => readStandardWebhook(request(), { secrets, now }))
    }
  })
})

describe('Stripe', () => {
  const secrets = 'whsec_test'
  const body = JSON.stringify({ id: 'evt_1', type: 'charge.succeeded', pending_webhooks: 2, data: { object: {} } })
  const now = 1_700_000_000_000
  const sign = (text: string, seconds = now / 1_000, secret = secrets) =>
    `t=${seconds},v1=${hmac(secret, `${seconds}.${text}`, 'hex')}`
  const read = (header: string, text = body) =>
    readStripeWebhook({ headers: { 'stripe-signature': header }, body: text }, { secrets, now })

  test('the event has its own id, and its type is the topic', () => {
    const message = read(sign(body))
    assert.deepEqual([message.id, message.topic, message.body], ['evt_1', 'charge.succeeded', body])
    const [time, signature] = sign(body).split(',')
    read(`${time}, v1=${'0'.repeat(64)},${signature},v0=abc`)
  })

  test("what Stripe's own library signs is accepted", () => {
    const { webhooks } = new Stripe('sk_test_unused')
    read(webhooks.generateTestHeaderString({ payload: body, secret: secrets, timestamp: now / 1_000 }))
  })

  test('a retry has another number of pending webhooks, and is the same event', () => {
    const { data, ...rest } = JSON.parse(body) as Record<string, unknown>
    const retry = { ...rest, data, pending_webhooks: 1 }
    assert.deepEqual(stripeFingerprint(retry), stripeFingerprint(JSON.parse(body)))
    assert.notDeepEqual(stripeFingerprint({ ...retry, type: 'x' }), stripeFingerprint(retry))
  })

  test('everything else is refused, and named', () => {
    const part = 'stripe-signature'
    refuses('bad_signature', part, () => read(sign(body), `${body} `))
    refuses('bad_signature', part, () => read(sign(body, now / 1_000, 'other')))
    refuses('bad_signature', part, () => read(sign(body, now / 1_000 - 301)))
    refuses('bad_signature', part, () => read(sign(body, now / 1_000 + 301)))
    refuses('bad_signature', part, () => read(sign(body).replace('v1=', 'v0=')))
    refuses('bad_signature', part, () => read(sign(body).replace('t=', 'u=')))
    refuses('bad_signature', part, () => read(`t=1,${sign(body)}`))
    refuses('unreadable_message', part, () => read(''))
    for (const [text, wrong] of [
      ['no json', 'body'],
      ['[]', 'body'],
      ['{"type":"x"}', 'id'],
      ['{"id":"x"}', 'type'],
    ] as const) {
      refuses('unreadable_message', wrong, () => read(sign(text), text))
    }
  })
})

describe('GitHub', () => {
  // The example of GitHub's own documentation.
  const secrets = "It's a Secret to Everybody"
  const body = 'Hello, World!'
  const headers = {
    'X-GitHub-Delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0958',
    'X-GitHub-Event': 'push',
    'X-Hub-Signature-256': 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17',
  }

  test('a signed delivery is read', () => {
    const message = readGithubWebhook({ headers, body }, { secrets: ['older', secrets] })
    assert.deepEqual([message.id, message.topic, message.body], [headers['X-GitHub-Delivery'], 'push', body])
  })

  test('everything else is refused, and named', () => {
    const read = (changes: object, text = body) =>
      readGithubWebhook({ headers: { ...headers, ...changes }, body: text }, { secrets })
    const part = 'x-hub-signature-256'
    refuses('bad_signature', part, () => read({}, 'Hello, World?'))
    refuses('bad_signature', part, () => read({ 'X-Hub-Signature-256': 'sha256=757107' }))
    refuses('bad_signature', part, () => read({ 'X-Hub-Signature-256': 'sha1=7' }))
    refuses('unreadable_message', part, () => read({ 'X-Hub-Signature-256': undefined }))
    refuses('unreadable_message', 'x-github-delivery', () => read({ 'X-GitHub-Delivery': '' }))
    refuses('unreadable_message', 'x-github-event', () => read({ 'X-GitHub-Event': undefined }))
  })

  test('a body that is signed but no text is refused', () => {
    const bytes = Uint8Array.of(0xff, 0xfe)
    const signature = `sha256=${createHmac('sha256', secrets).update(bytes).digest('hex')}`
    refuses('unreadable_message', 'body', () =>
      readGithubWebhook({ headers: { ...headers, 'X-Hub-Signature-256': signature }, body: bytes }, { secrets }),
    )
  })
})
