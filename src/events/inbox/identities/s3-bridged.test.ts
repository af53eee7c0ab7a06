import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isOnceError } from '../../../ledger/core/errors.ts'
import { readS3Notification } from './s3.ts'

const detail = {
  version: '0',
  bucket: { name: 'uploads' },
  object: { key: 'imports/s 1/ü+1.ris', size: 7, etag: 'b1946ac9', 'version-id': 'v1', sequencer: '0062E99A' },
  'request-id': 'N4N7GDK58NMKJ12R',
  reason: 'PutObject',
}
const envelope = {
  version: '0',
  id: '17793124-05d4-b198-2fde-7ededc63b103',
  'detail-type': 'Object Created',
  source: 'aws.s3',
  time: '2026-11-12T00:00:00Z',
  resources: ['arn:aws:s3:::uploads'],
  detail,
}
const direct = {
  eventName: 'ObjectCreated:Put',
  s3: {
    bucket: { name: 'uploads' },
    object: { key: 'imports/s+1/%C3%BC%2B1.ris', size: 7, eTag: 'b1946ac9', versionId: 'v1', sequencer: '0062E99A' },
  },
}

const read = (body: unknown) => readS3Notification(JSON.stringify(body))

test('an event is the same whether S3, SNS or EventBridge brings it', () => {
  const [event] = read(envelope)
  assert.deepEqual(event, read({ Records: [direct] })[0])
  assert.deepEqual(event, read({ Type: 'Notification', Message: JSON.stringify(envelope) })[0])
  assert.deepEqual([event?.key, event?.etag, event?.version], ['imports/s 1/ü+1.ris', 'b1946ac9', 'v1'])
})

test('requests and removals have the names that S3 gives them', () => {
  const named = (type: string, reason: string) =>
    read({ ...envelope, 'detail-type': type, detail: { ...detail, reason } })[0]?.name
  assert.equal(named('Object Created', 'CompleteMultipartUpload'), 'ObjectCreated:CompleteMultipartUpload')
  assert.equal(named('Object Created', 'CopyObject'), 'ObjectCreated:Copy')
  assert.equal(named('Object Deleted', 'DeleteObject'), 'ObjectDeleted:DeleteObject')
})

test('what is wrong with an envelope is named', () => {
  const wrong = (body: unknown) => {
    try {
      read(body)
    } catch (error) {
      return isOnceError(error) ? error.details['part'] : error
    }
    return null
  }
  assert.equal(wrong({ ...envelope, source: 'somewhere.else' }), 'source')
  assert.equal(wrong({ ...envelope, detail: undefined }), 'detail')
  assert.equal(wrong({ ...envelope, detail: { ...detail, bucket: {} } }), 'detail.bucket.name')
  assert.equal(wrong({ ...envelope, detail: { ...detail, object: { etag: 'e' } } }), 'detail.object.key')
  assert.equal(wrong({ ...envelope, detail: { ...detail, object: { key: 'k', etag: 7 } } }), 'detail.object.etag')
})
