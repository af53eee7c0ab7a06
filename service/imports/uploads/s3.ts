import type { FieldError } from '../../http/problem.ts'
import { type ObjectCreated, uploadOf } from './notification.ts'

export type Notification =
  /** Notifications of other kinds (a test, a removal) are taken, and change nothing. */
  { readonly created: readonly ObjectCreated[]; readonly ignored: number } | { readonly errors: readonly FieldError[] }

/** More than any sender puts together, and few enough to be received within one request. */
const RECORDS_MOST = 100

/** Reads what S3 sends. Every record is looked at, and every field that is wrong is named. */
export function readNotification(text: string): Notification {
  const body = parsed(text)
  if (body === null) return { errors: [{ field: 'body', detail: 'is not a JSON object' }] }
  // What S3 sends once, when the hook is set up.
  if (body['Event'] === 's3:TestEvent') return { created: [], ignored: 1 }
  const records = body['Records']
  if (!Array.isArray(records) || records.length === 0 || records.length > RECORDS_MOST) {
    return { errors: [{ field: 'Records', detail: `is not a list of 1 to ${RECORDS_MOST} records` }] }
  }
  const errors: FieldError[] = []
  const created: ObjectCreated[] = []
  let ignored = 0
  records.forEach((record: unknown, at) => {
    const eventName = memberOf(record, 'eventName')
    if (typeof eventName !== 'string') errors.push({ field: `Records[${at}].eventName`, detail: 'is not a string' })
    else if (!/^(s3:)?ObjectCreated:/.test(eventName)) ignored++
    else {
      const read = readRecord(record, `Records[${at}].s3`)
      if ('errors' in read) errors.push(...read.errors)
      else created.push(read)
    }
  })
  return errors.length > 0 ? { errors } : { created, ignored }
}

function readRecord(record: unknown, field: string): ObjectCreated | { readonly errors: readonly FieldError[] } {
  const s3 = memberOf(record, 's3')
  const object = memberOf(s3, 'object')
  const bucket = memberOf(memberOf(s3, 'bucket'), 'name')
  const key = decoded(memberOf(object, 'key'))
  const upload = key === null ? null : uploadOf(key)
  const errors: FieldError[] = []
  if (typeof bucket !== 'string' || bucket === '') errors.push({ field: `${field}.bucket.name`, detail: 'is missing' })
  if (upload === null) errors.push({ field: `${field}.object.key`, detail: 'does not end with an import and a file' })
  if (upload === null || errors.length > 0) return { errors }
  const version = memberOf(object, 'versionId') ?? memberOf(object, 'eTag') ?? null
  return { ...upload, id: JSON.stringify([bucket, key, version, memberOf(object, 'sequencer') ?? null]) }
}

function parsed(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const body: unknown = JSON.parse(text)
    return typeof body === 'object' && body !== null && !Array.isArray(body) ? { ...body } : null
  } catch {
    return null
  }
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>)[name] : undefined
}

/** Keys come encoded as in a form: a space is a plus. Null when it is none, or holds what no text column can. */
function decoded(key: unknown): string | null {
  if (typeof key !== 'string') return null
  try {
    const text = decodeURIComponent(key.replaceAll('+', ' '))
    return text.includes('\0') || !text.isWellFormed() ? null : text
  } catch {
    return null
  }
}
