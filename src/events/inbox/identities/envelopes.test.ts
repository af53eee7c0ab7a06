import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import { readCloudEvents } from './cloud-events.ts'
import { readS3Notification } from './s3.ts'
import { readStandardWebhook } from './standard-webhooks.ts'

const tagging = (requestId: string | null, eventTime: string) => ({
  eventName: 'ObjectTagging:Put',
  eventTime,
  ...(requestId === null ? {} : { responseElements: { 'x-amz-request-id': requestId } }),
  s3: { bucket: { name: 'uploads' }, object: { key: 'a.ris', eTag: 'e1' } },
})
const idsOf = (...records: readonly object[]) =>
  records.map((record) => readS3Notification(JSON.stringify({ Records: [record] }))[0]?.message.id)

test('events without a sequencer are distinguished by their request, else by their time', () => {
  const [first, copy, later] = idsOf(
    tagging('r1', '2026-11-01'),
    tagging('r1', '2026-11-01'),
    tagging('r2', '2026-11-02'),
  )
  assert.equal(first, copy)
  assert.notEqual(first, later)
  const [timed, timedCopy, timedLater] = idsOf(
    tagging(null, '2026-11-01'),
    tagging(null, '2026-11-01'),
    tagging(null, '2026-11-02'),
  )
  assert.equal(timed, timedCopy)
  assert.notEqual(timed, timedLater)
})

test('a queue brings notifications of any kind, several at once', () => {
  const plain = JSON.stringify({ Records: [tagging('r1', 't')] })
  const wrapped = JSON.stringify({ Type: 'Notification', Message: plain })
  const batch = { Records: [plain, wrapped].map((body) => ({ eventSource: 'aws:sqs', messageId: 'm', body })) }
  const ids = readS3Notification(JSON.stringify(batch)).map(({ message }) => message.id)
  assert.deepEqual(ids, [...idsOf(tagging('r1', 't')), ...idsOf(tagging('r1', 't'))])
  const nested = JSON.stringify({ Records: [{ eventSource: 'aws:sqs', body: JSON.stringify(batch) }] })
  assert.throws(() => readS3Notification(nested), /s3/, 'a batch in a batch is none')
})

test('webhooks of Svix have names of their own, and all three of them', () => {
  const key = Buffer.from('a key of at least some bytes')
  const now = Math.floor(Date.now() / 1_000)
  const body = '{"n":1}'
  const signature = `v1,${createHmac('sha256', key).update(`msg_1.${now}.${body}`).digest('base64')}`
  const headers = { 'svix-id': 'msg_1', 'svix-timestamp': String(now), 'svix-signature': signature }
  const options = { secrets: [`whsec_${key.toString('base64')}`], nowMs: () => now * 1_000 } as never
  assert.equal(readStandardWebhook({ headers, body }, options).id, 'msg_1')
  const mixed = { ...headers, 'webhook-id': 'msg_1' }
  assert.throws(() => readStandardWebhook({ headers: mixed, body }, options), /webhook-timestamp/)
})

test('an event in binary mode keeps every attribute, from whatever kind of headers', () => {
  const named = {
    'ce-specversion': '1.0',
    'ce-id': '1',
    'ce-source': '/s',
    'ce-type': 't',
    'ce-traceparent': '00-abc',
    'ce-dataschema': 'urn:x',
    'content-type': 'text/plain',
  }
  for (const headers of [named, new Headers(named)]) {
    const [event] = readCloudEvents({ headers, body: 'hello' })
    assert.deepEqual([event?.headers['ce-traceparent'], event?.headers['ce-dataschema']], ['00-abc', 'urn:x'])
  }
})

test('data that are no text come in base64 and say so, the same in both modes', () => {
  const bytes = Uint8Array.from([0xff, 0xfe, 0x00])
  const headers = { 'ce-specversion': '1.0', 'ce-id': '1', 'ce-source': '/s', 'ce-type': 't' }
  const [binary] = readCloudEvents({ headers, body: bytes })
  const body = JSON.stringify({
    specversion: '1.0',
    id: '1',
    source: '/s',
    type: 't',
    data_base64: Buffer.from(bytes).toString('base64'),
  })
  const [structured] = readCloudEvents({ headers: { 'content-type': 'application/cloudevents+json' }, body })
  for (const event of [binary, structured]) {
    assert.deepEqual([event?.body, event?.headers['data-encoding']], ['//4A', 'base64'])
  }
})
