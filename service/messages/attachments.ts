import { Buffer } from 'node:buffer'

export interface Attachment {
  readonly filename: string
  readonly contentType: string
  readonly url?: string
  readonly base64?: string
}

type Refuse = (field: string, detail: string) => void

const ATTACHMENTS_MOST = 10
const FILENAME_CHARS_MOST = 200
const URL_CHARS_MOST = 2_000
/** Of all attachments together, decoded: what mail servers take without a question. */
const BYTES_MOST = 5 * 1_024 * 1_024
/** The body of a request that is just small enough: base64, escaped text, and the fields around them. */
export const REQUEST_BYTES_MOST = 8 * 1_024 * 1_024

/** Names the very attachment and the very member of it that is wrong. */
export function checkAttachments(given: unknown, refuse: Refuse): readonly Attachment[] {
  if (given === undefined || given === null) return []
  if (!Array.isArray(given)) {
    refuse('attachments', 'is not a list')
    return []
  }
  if (given.length > ATTACHMENTS_MOST) {
    refuse('attachments', `holds more than ${ATTACHMENTS_MOST}`)
    return []
  }
  const attachments = given.map((each, index) => checkAttachment(each, `attachments[${index}]`, refuse))
  const bytes = attachments.reduce((sum, each) => sum + bytesOf(each), 0)
  if (bytes > BYTES_MOST) refuse('attachments', `holds more than ${BYTES_MOST} bytes`)
  return attachments
}

function checkAttachment(given: unknown, field: string, refuse: Refuse): Attachment {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    refuse(field, 'is not an object')
    return { filename: '', contentType: '' }
  }
  const { filename, contentType, url, base64 } = given as Readonly<Record<string, unknown>>
  if (!isFilename(filename)) refuse(`${field}.filename`, 'is not the name of a file')
  if (!isMediaType(contentType)) refuse(`${field}.contentType`, 'is not a media type, such as image/png')
  const named = { filename: String(filename), contentType: String(contentType) }
  if (isGiven(url) === isGiven(base64)) {
    refuse(field, isGiven(url) ? 'has both a url and base64: one of them is needed' : 'has neither a url nor base64')
    return named
  }
  if (isGiven(url)) {
    if (!isWebUrl(url)) refuse(`${field}.url`, 'is not an http or https URL')
    return { ...named, url: String(url) }
  }
  if (!isBase64(base64)) refuse(`${field}.base64`, 'is not base64')
  return { ...named, base64: String(base64) }
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null
}

/** No path and no control character: some mail programs believe both. */
function isFilename(value: unknown): boolean {
  return (
    typeof value === 'string' &&
    value.trim() !== '' &&
    value.length <= FILENAME_CHARS_MOST &&
    value.isWellFormed() &&
    !/[/\\\p{Cc}]/u.test(value)
  )
}

function isMediaType(value: unknown): boolean {
  return typeof value === 'string' && /^[\w!#$&^.+-]{1,64}\/[\w!#$&^.+-]{1,64}(?:;[ -~]{0,128})?$/.test(value)
}

function isWebUrl(value: unknown): boolean {
  if (typeof value !== 'string' || value.length > URL_CHARS_MOST || /\s/.test(value)) return false
  const url = URL.parse(value)
  return url !== null && (url.protocol === 'https:' || url.protocol === 'http:')
}

/** As it was encoded: what decodes to something else would arrive as something else. */
function isBase64(value: unknown): boolean {
  return typeof value === 'string' && value !== '' && Buffer.from(value, 'base64').toString('base64') === value
}

function bytesOf({ base64 }: Attachment): number {
  return base64 === undefined ? 0 : Buffer.byteLength(base64, 'base64')
}
