import { isOnceError } from 'onceonly'
import { readS3Notification, type S3Event } from 'onceonly/inbox'
import type { FieldError } from '../../http/problem.ts'
import { type ObjectCreated, uploadOf } from './notification.ts'

export type Notification =
  /** Notifications of other kinds (a test, a removal) are taken, and change nothing. */
  { readonly created: readonly ObjectCreated[]; readonly ignored: number } | { readonly errors: readonly FieldError[] }

/** More than any sender puts together, and few enough to be received within one request. */
const RECORDS_MOST = 100

/** Reads what S3 sends, and what it means here. */
export function readNotification(text: string): Notification {
  const events = eventsIn(text)
  if ('errors' in events) return events
  if (events.length > RECORDS_MOST) return wrong('Records', `are more than ${RECORDS_MOST}`)
  const created: ObjectCreated[] = []
  for (const [at, { name, key, message }] of events.entries()) {
    if (!name.startsWith('ObjectCreated:')) continue
    const upload = uploadOf(key)
    if (upload === null) return wrong(`Records[${at}].s3.object.key`, 'does not end with an import and a file')
    created.push({ ...upload, message })
  }
  // A test of the hook has no events, and is one thing that was ignored.
  return { created, ignored: Math.max(events.length, 1) - created.length }
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
