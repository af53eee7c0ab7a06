import type { IncomingMessage } from '../port.ts'
import type { JsonObject } from './request.ts'
import { incoming, jsonOf, objectOf, textIn, unreadable } from './request.ts'

/** One thing that happened to one object. */
export interface S3Event {
  readonly bucket: string
  /** Decoded: notifications have it URL-encoded, with `+` for a space. */
  readonly key: string
  /** The version, where the bucket keeps versions; else the ETag; null for what has neither, such as a deletion. */
  readonly version: string | null
  /** Of its content; null for what has none. */
  readonly etag: string | null
  /** Orders the events of one object; null for events that have none. */
  readonly sequencer: string | null
  /** `ObjectCreated:Put` and so on, without `s3:`. */
  readonly name: string
  readonly size: number | null
  /** What an inbox receives: copies of the event have the same id, through whichever notification they came. */
  readonly message: IncomingMessage
}

/** S3 sends one record per notification; others may send more, but a notification is no listing. */
const MOST_RECORDS = 1_000

/**
 * The events in an S3 notification, also when it came through SNS, EventBridge or SQS. The test that S3 sends when
 * notifications are set up holds none.
 */
export function readS3Notification(body: string): readonly S3Event[] {
  return readNotification(body, false)
}

function readNotification(body: string, inQueue: boolean): readonly S3Event[] {
  const notification = unwrapped(objectOf(jsonOf(body), 'body'))
  if (notification['Event'] === 's3:TestEvent') return []
  if (typeof notification['detail-type'] === 'string')
    return [bridgedEventOf(notification, notification['detail-type'])]
  const { Records: records } = notification
  if (!Array.isArray(records)) throw unreadable('Records', 'is missing')
  if (records.length > MOST_RECORDS) throw unreadable('Records', `are more than ${MOST_RECORDS}`)
  return records.flatMap((record: unknown, index) => {
    const at = `Records[${index}]`
    const each = objectOf(record, at)
    // A batch of a queue, as functions get it: each holds a notification of its own, and no other batch.
    if (each['eventSource'] === 'aws:sqs' && !inQueue) return readNotification(textIn(each, 'body', `${at}.body`), true)
    return [eventOf(each, at)]
  })
}

function unwrapped(body: JsonObject): JsonObject {
  const { Type: type, Message: message } = body
  return type === 'Notification' && typeof message === 'string' ? objectOf(jsonOf(message), 'Message') : body
}

function eventOf(record: JsonObject, at: string): S3Event {
  const s3 = objectOf(record['s3'], `${at}.s3`)
  const bucket = textIn(objectOf(s3['bucket'], `${at}.s3.bucket`), 'name', `${at}.s3.bucket.name`)
  const object = objectOf(s3['object'], `${at}.s3.object`)
  const key = decodedKey(textIn(object, 'key', `${at}.s3.object.key`), `${at}.s3.object.key`)
  const name = textIn(record, 'eventName', `${at}.eventName`).replace(/^s3:/, '')
  const answered = record['responseElements']
  const request =
    typeof answered === 'object' && answered !== null ? (answered as JsonObject)['x-amz-request-id'] : null
  const moment = firstText(request, record['eventTime'])
  return s3Event({ bucket, key, name, moment }, object, { version: 'versionId', etag: 'eTag', at: `${at}.s3.object` })
}

/** What EventBridge calls the requests that S3 has its own names for. */
const reasons: Readonly<Record<string, string>> = {
  PutObject: 'Put',
  'POST Object': 'Post',
  CopyObject: 'Copy',
  CompleteMultipartUpload: 'CompleteMultipartUpload',
}

/** The same event has the same id as in a notification of S3's own. Here keys are not encoded. */
function bridgedEventOf(envelope: JsonObject, type: string): S3Event {
  const source = textIn(envelope, 'source', 'source')
  if (source !== 'aws.s3') throw unreadable('source', `is ${JSON.stringify(source)}, not "aws.s3"`)
  const detail = objectOf(envelope['detail'], 'detail')
  const bucket = textIn(objectOf(detail['bucket'], 'detail.bucket'), 'name', 'detail.bucket.name')
  const object = objectOf(detail['object'], 'detail.object')
  const key = textIn(object, 'key', 'detail.object.key')
  const reason = typeof detail['reason'] === 'string' ? (reasons[detail['reason']] ?? detail['reason']) : null
  const name = [type.replaceAll(' ', ''), ...(reason === null ? [] : [reason])].join(':')
  const moment = firstText(detail['request-id'], envelope['time'])
  return s3Event({ bucket, key, name, moment }, object, { version: 'version-id', etag: 'etag', at: 'detail.object' })
}

interface Members {
  readonly version: string
  readonly etag: string
  readonly at: string
}

interface About extends Pick<S3Event, 'bucket' | 'key' | 'name'> {
  /** The request that caused it, or its time: distinguishes events without a sequencer. */
  readonly moment: string | null
}

function firstText(...values: readonly unknown[]): string | null {
  return values.find((value): value is string => typeof value === 'string' && value !== '') ?? null
}

function s3Event(about: About, object: JsonObject, members: Members): S3Event {
  const { bucket, key, name, moment } = about
  const { at } = members
  const etag = optionalText(object, members.etag, at)
  const version = optionalText(object, members.version, at) ?? etag
  const sequencer = optionalText(object, 'sequencer', at)
  if (sequencer !== null && !isSequencer(sequencer)) throw unreadable(`${at}.sequencer`, 'is not hexadecimal')
  if (version === null && sequencer === null && moment === null) {
    throw unreadable(at, 'has neither version nor sequencer')
  }
  const size = typeof object['size'] === 'number' ? object['size'] : null
  const event = { bucket, key, version, etag, sequencer, name, size }
  const order = sequencer === null ? [null, ...(moment === null ? [] : [moment])] : [sequencer.toUpperCase()]
  const id = JSON.stringify([bucket, key, version, ...order, name])
  // The object is the line in which its events stand; they have no consecutive numbers, though.
  const line = JSON.stringify([bucket, key])
  // Not the record itself: the same event may come through two configurations, and names them.
  return { ...event, message: incoming({ id, topic: `s3.${name}`, key: line, body: JSON.stringify(event) }) }
}

function decodedKey(text: string, part: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch (cause) {
    throw unreadable(part, 'is not URL-encoded UTF-8', cause)
  }
}

function optionalText(object: JsonObject, name: string, at: string): string | null {
  const value = object[name]
  if (value === undefined || value === null || value === '') return null
  if (typeof value !== 'string') throw unreadable(`${at}.${name}`, 'is not a text')
  return value
}

const isSequencer = (text: string) => /^[0-9a-fA-F]{1,128}$/.test(text)

/**
 * Which of two events of one object came first: negative, zero or positive, as for sorting. Sequencers are fractions in
 * hexadecimal, so the shorter one is filled with zeros on its right.
 */
export function compareS3Sequencers(a: string, b: string): number {
  for (const sequencer of [a, b]) if (!isSequencer(sequencer)) throw unreadable('sequencer', 'is not hexadecimal')
  const digits = Math.max(a.length, b.length)
  const [left, right] = [a.toUpperCase().padEnd(digits, '0'), b.toUpperCase().padEnd(digits, '0')]
  if (left === right) return 0
  return left < right ? -1 : 1
}

/** True when a later event of the same object was seen already: what this one says is not so any more. */
export function isStaleS3Event({ sequencer }: Pick<S3Event, 'sequencer'>, latestSequencer: string | null): boolean {
  return sequencer !== null && latestSequencer !== null && compareS3Sequencers(sequencer, latestSequencer) < 0
}
