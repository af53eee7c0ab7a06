import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import type { HookRequest } from 'onceonly/webhooks'
import {
  isStaleS3Event,
  readCloudEvents,
  readGithubWebhook,
  readS3Notification,
  readStandardWebhook,
} from 'onceonly/webhooks'

const secrets = { github: 'a secret of GitHub', svix: `whsec_${Buffer.from('a secret of Svix').toString('base64')}` }

// Each reader checks the signature over the raw body and returns what `inbox.receive` takes.
const read = {
  github: (request: HookRequest) => readGithubWebhook(request, { secrets: secrets.github }),
  // Standard Webhooks and Svix: the same signature under two families of headers. Two secrets while one is rotated.
  svix: (request: HookRequest) => readStandardWebhook(request, { secrets: [secrets.svix], topic: 'clerk' }),
  // Structured, batched or binary; not signed, so authenticate the sender yourself.
  cloudEvents: (request: HookRequest) => readCloudEvents(request),
  // From S3, SNS, SQS, MinIO or EventBridge; one notification holds several events.
  s3: (body: string) => readS3Notification(body).map(({ message }) => message),
}

const body = '{"action":"created"}'
const signed = createHmac('sha256', secrets.github).update(body).digest('hex')
const star = read.github({
  headers: { 'x-github-delivery': '72d3162e', 'x-github-event': 'star', 'x-hub-signature-256': `sha256=${signed}` },
  body,
})
assert.deepEqual([star.id, star.topic], ['72d3162e', 'star'])

const seconds = String(Math.floor(Date.now() / 1_000))
const digest = createHmac('sha256', 'a secret of Svix').update(`msg_1.${seconds}.${body}`).digest('base64')
const headers = { 'svix-id': 'msg_1', 'svix-timestamp': seconds, 'svix-signature': `v1,${digest}` }
assert.deepEqual([read.svix({ headers, body }).id, read.svix({ headers, body }).topic], ['msg_1', 'clerk'])

const [placed] = read.cloudEvents({
  headers: { 'content-type': 'application/cloudevents+json' },
  body: '{"specversion":"1.0","id":"A1","source":"/orders","type":"order.placed","data":{"order":7}}',
})
assert.deepEqual([placed?.id, placed?.topic, placed?.body], ['["/orders","A1"]', 'order.placed', '{"order":7}'])

const notification = JSON.stringify({
  Records: [
    {
      eventName: 'ObjectCreated:Put',
      s3: { bucket: { name: 'uploads' }, object: { key: 'a.csv', eTag: 'e1', sequencer: '0055AED6DCD90281E5' } },
    },
  ],
})
assert.equal(read.s3(notification)[0]?.topic, 's3.ObjectCreated:Put')

// S3 does not keep the order of events: keep the sequencer of the newest one, and drop what is older.
const [upload] = readS3Notification(notification)
assert.ok(upload !== undefined && isStaleS3Event(upload, '0055AED6DCD90281FF'))

console.log('five senders, one kind of message')
