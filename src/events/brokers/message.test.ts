import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { headers as newHeaders } from '@nats-io/transport-node'
import fc from 'fast-check'
import { brokerLimits } from '../../ledger/core/limits.ts'
import type { OutgoingMessage } from '../outbox/port.ts'
import { count, fromAscii, toAscii, tooLarge } from './headers.ts'
import * as nats from './nats/message.ts'
import * as rabbitmq from './rabbitmq/message.ts'

const text = fc.string({ unit: 'grapheme', maxLength: 20 })
/** Names that brokers, or we, give a meaning to must arrive like any other. */
const orders = [
  'CC',
  'BCC',
  'x-death',
  'x-delivery-count',
  'Nats-Rollup',
  'nats-msg-id',
  'Onceonly-Key',
  'onceonly-key',
]
const name = fc.oneof(text, fc.constantFrom(...orders, '__proto__', 'toString', 'a:b', ' a', '', 'trace-id'))
const value = fc.oneof(text, fc.constantFrom('', ' a ', 'a\r\nNats-Rollup: all', '100%', '%41', '\u0000', '\ud800'))

const messages: fc.Arbitrary<OutgoingMessage> = fc.record({
  id: fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }),
  topic: fc.oneof(fc.string({ minLength: 1, maxLength: 20 }), fc.constantFrom('a.b', '.a', 'a..b', 'a.*', '>', 'a b')),
  key: fc.option(text),
  sequence: fc.option(fc.integer({ min: 1 })),
  body: text,
  headers: fc.dictionary(name, value, { noNullPrototype: true }),
})

suite('a message arrives as it was committed', () => {
  test('by way of RabbitMQ', () => {
    fc.assert(
      fc.property(messages, (message) => {
        const envelope = rabbitmq.envelopeOf(message, 'exchange')
        const { routingKey, messageId, headers } = envelope
        for (const [header, carried] of Object.entries(headers)) {
          assert.match(header, /^[!-~]{1,128}$/)
          assert.ok(!/^b?cc$/i.test(header))
          assert.equal(typeof carried, 'string')
        }
        const delivered = rabbitmq.incomingOf({ routingKey, messageId, headers, body: Buffer.from(message.body) })
        assert.deepEqual(delivered, { ...message, deliveries: 1 })

        // And from a detour, on which the server adds words of its own.
        const detour = rabbitmq.detourOf({ ...delivered, deliveries: 4 }, 'waiting', 250)
        const words = { 'x-death': [{ queue: 'waiting' }], 'x-first-death-queue': 'waiting', 'x-delivery-count': 2 }
        const again = rabbitmq.incomingOf({
          routingKey: 'queue',
          messageId: detour.messageId,
          headers: { ...detour.headers, ...words },
          body: Buffer.from(message.body),
        })
        assert.deepEqual(again, { ...message, deliveries: 7 })
      }),
    )
  })

  test('by way of NATS', () => {
    fc.assert(
      fc.property(messages, (message) => {
        const headers = nats.fillHeaders(newHeaders(), message)
        headers.set('Nats-Msg-Id', nats.messageIdOf(message))
        for (const header of headers.keys()) {
          assert.match(header, /^[!-9;-~]+$/)
          assert.match(headers.get(header), /^([!-~]([ -~]*[!-~])?)?$/)
          assert.ok(!/^nats-/i.test(header) || header === 'Nats-Msg-Id')
        }
        const subject = nats.subjectOf('ns', message.topic)
        // No wildcard, no space, no empty part.
        assert.match(subject, /^ns(\.[!-)+-\-/-=?-~]+)+$/)
        const info = { deliveryCount: 3, stream: 's', streamSequence: 9 }
        const ignore = () => {}
        const delivered = nats.incomingOf(
          { subject, data: Buffer.from(message.body), headers, info, ack: ignore, nak: ignore, working: ignore },
          'ns',
        )
        assert.deepEqual(delivered, { ...message, deliveries: 3 })
      }),
    )
  })
})

test('different topics have different subjects', () => {
  fc.assert(
    fc.property(text, text, (one, other) => {
      fc.pre(one !== other)
      assert.notEqual(nats.subjectOf('ns', one), nats.subjectOf('ns', other))
    }),
  )
})

test('what others send to RabbitMQ is understood as far as it goes', () => {
  const message = rabbitmq.incomingOf({
    routingKey: 'orders',
    headers: { retries: 3, 'onceonly-deliveries': '-5', 'onceonly-sequence': 'many', 'onceonly-headers': '{broken' },
    body: { parsed: true },
  })
  assert.deepEqual(message, {
    id: '',
    topic: 'orders',
    key: null,
    sequence: null,
    body: '{"parsed":true}',
    headers: { retries: '3' },
    deliveries: 1,
  })
})

test('a parsed message that cannot be serialized again arrives without a body, instead of being redelivered forever', () => {
  let deep: unknown = 0
  for (let n = 0; n < 100_000; n++) deep = [deep]
  const { id, body, headers } = rabbitmq.incomingOf({ routingKey: 'a', messageId: 'm', headers: { deep }, body: deep })
  assert.deepEqual([id, body, headers], ['m', '', { deep: '' }])
})

test('text in visible ASCII, and back', () => {
  assert.equal(toAscii('a b%☃'), 'a%20b%25%e2%98%83')
  fc.assert(fc.property(text, (some) => assert.equal(fromAscii(toAscii(some)), some)))
  assert.equal(fromAscii('50%'), '50%')
})

test('only what counts something is believed', () => {
  assert.deepEqual(['3', 3, '', '-1', '1.5', 'x', null, {}, 2 ** 60].map(count), [3, 3, ...Array(7).fill(null)])
})

test('what is too large is refused before it reaches a broker', () => {
  const small: OutgoingMessage = { id: 'i', topic: 't', key: null, sequence: null, body: '{}', headers: {} }
  assert.equal(tooLarge(small), null)
  const long = 'ä'.repeat(brokerLimits.nameBytes)
  assert.match(tooLarge({ ...small, id: long }) ?? '', /^The id/)
  assert.match(tooLarge({ ...small, id: '' }) ?? '', /^The id/)
  assert.match(tooLarge({ ...small, topic: long }) ?? '', /^The topic/)
  assert.match(tooLarge({ ...small, headers: { a: 'x'.repeat(brokerLimits.headerBytes) } }) ?? '', /^The key and the/)
  assert.match(tooLarge({ ...small, body: 'x'.repeat(brokerLimits.bodyBytes + 1) }) ?? '', /^The body/)
})
