import assert from 'node:assert/strict'
import type { Answer, TestServer } from '../cluster.ts'
import { ask, hookSecret } from './imports.ts'
import { BUCKET_OF_TESTS, PREFIX_OF_TESTS } from './s3.ts'

/** One object that a bucket announces. */
export interface BucketObject {
  readonly searchId: string
  readonly name: string
  readonly etag: string
  readonly bytes: number
  readonly sequencer?: string
  readonly bucket?: string
  readonly prefix?: string
}

const keyOf = ({ prefix = PREFIX_OF_TESTS, searchId, name }: BucketObject) => `${prefix}/${searchId}/${name}`

/** As S3 itself sends it. */
export function direct(object: BucketObject): object {
  const { bucket = BUCKET_OF_TESTS, etag, bytes, sequencer = '0055' } = object
  const key = encodeURIComponent(keyOf(object)).replaceAll('%2F', '/').replaceAll('%20', '+')
  const s3 = { bucket: { name: bucket }, object: { key, eTag: etag, size: bytes, sequencer } }
  return { Records: [{ eventTime: new Date().toISOString(), eventName: 'ObjectCreated:Put', s3 }] }
}

/** As SNS passes it on. */
export function bySns(object: BucketObject): object {
  const MessageId = crypto.randomUUID()
  return { Type: 'Notification', MessageId, TopicArn: TOPIC, Message: JSON.stringify(direct(object)) }
}

export const TOPIC = 'arn:aws:sns:us-east-1:1:uploads'

/** As EventBridge passes it on. */
export function byEventBridge(object: BucketObject): object {
  const { bucket = BUCKET_OF_TESTS, etag, bytes, sequencer = '0055' } = object
  return {
    id: crypto.randomUUID(),
    'detail-type': 'Object Created',
    source: 'aws.s3',
    detail: {
      bucket: { name: bucket },
      object: { key: keyOf(object), size: bytes, etag, sequencer },
      reason: 'PutObject',
    },
  }
}

/** SNS knows no other credential, and calls its JSON plain text. */
export function notifyAsSns(server: TestServer, body: object): Promise<Answer> {
  const authorization = `Basic ${Buffer.from(`sns:${hookSecret}`).toString('base64')}`
  return ask(server, 'POST', '/hooks/s3', JSON.stringify(body), { authorization, 'content-type': 'text/plain' })
}

/** As a client does: requests the address, and uploads to the bucket. Returns the bucket's notification. */
export async function uploadDirectly(
  server: TestServer,
  searchId: string,
  name: string,
  content: string,
): Promise<BucketObject> {
  const bytes = Buffer.byteLength(content)
  const path = `/api/imports/${searchId}/files/${encodeURIComponent(name)}/upload?bytes=${bytes}`
  const answer = await server.get(path)
  assert.deepEqual([answer.status, answer.body['to']], [200, 'storage'], answer.text)
  const { url, headers } = answer.body as unknown as { readonly url: string; readonly headers: Record<string, string> }
  const put = await fetch(url, { method: 'PUT', headers, body: content })
  assert.equal(put.status, 200, await put.text())
  return { searchId, name, bytes, etag: (put.headers.get('etag') ?? '').replaceAll('"', '') }
}
