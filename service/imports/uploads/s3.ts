import { isOnceError } from 'onceonly'
import { readS3Notification, type S3Event } from 'onceonly/webhooks'
import type { FieldError } from '../../http/problem.ts'
import { locateAnywhere, type ObjectCreated } from './notification.ts'
import type { Storage } from './storage.ts'

export type Notification =
  /** Notifications of other kinds (a test, a removal) are taken, and change nothing. */
  | { readonly created: readonly ObjectCreated[]; readonly ignored: number }
  | { readonly confirm: Confirmation }
  | { readonly errors: readonly FieldError[] }

/** SNS asks whether a topic may send here. A person opens the address: this server calls no address that it was sent. */
export interface Confirmation {
  readonly topic: string
  readonly url: string
}

/** More than any sender puts together, and few enough to be received within one request. */
const RECORDS_MOST = 100

type Locate = Storage['locate']

/** Reads what S3, SNS and EventBridge send, and what it means here. */
export function readNotification(text: string, locate: Locate = ({ key }) => locateAnywhere(key)): Notification {
  const confirmation = confirmationIn(text)
  if (confirmation !== null) return confirmation
  const events = eventsIn(text)
  if ('errors' in events) return events
  if (events.length > RECORDS_MOST) return wrong('Records', `are more than ${RECORDS_MOST}`)
  const created: ObjectCreated[] = []
  for (const [at, { bucket, name, key, etag, message }] of events.entries()) {
    if (!name.startsWith('ObjectCreated:')) continue
    const upload = locate({ bucket, key })
    if (upload === null) continue
    if ('part' in upload) return wrong(fieldOf(at, upload.part), upload.detail)
    created.push({ ...upload, etag, message })
  }
  // A test of the hook has no events, and is one thing that was ignored.
  return { created, ignored: Math.max(events.length, 1) - created.length }
}

/** Where S3 has it; EventBridge has one event, with the same parts. */
export function fieldOf(at: number, part: 'bucket' | 'key'): string {
  return part === 'bucket' ? `Records[${at}].s3.bucket.name` : `Records[${at}].s3.object.key`
}

const ADDRESS_CHARS_MOST = 2_048

function confirmationIn(text: string): Notification | null {
  // Everything else is read, and refused, in one place.
  if (!/"(Subscription|Unsubscribe)Confirmation"/.test(text)) return null
  const { Type: type, TopicArn: topic, SubscribeURL: url } = fieldsIn(text)
  if (type === 'UnsubscribeConfirmation') return { created: [], ignored: 1 }
  if (type !== 'SubscriptionConfirmation') return null
  if (typeof topic !== 'string' || topic.length > ADDRESS_CHARS_MOST) return wrong('TopicArn', 'is not a topic')
  const isAddress = typeof url === 'string' && url.length <= ADDRESS_CHARS_MOST && URL.parse(url)?.protocol === 'https:'
  return isAddress ? { confirm: { topic, url } } : wrong('SubscribeURL', 'is not an https address')
}

function fieldsIn(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}

function eventsIn(text: string): readonly S3Event[] | { readonly errors: readonly FieldError[] } {
  try {
    return readS3Notification(text)
  } catch (error) {
    if (!isOnceError(error)) throw error
    return wrong(String(error.details['part'] ?? 'body'), error.message)
  }
}

function wrong(field: string, detail: string): { readonly errors: readonly FieldError[] } {
  return { errors: [{ field, detail }] }
}
