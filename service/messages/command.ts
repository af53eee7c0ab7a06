import type { FieldError } from '../http/problem.ts'
import { charsOf, unstorable } from '../http/text.ts'
import { type Attachment, checkAttachments } from './attachments.ts'
import { type ChannelName, channelNames } from './channels/channel.ts'
import type { CrmIds } from './message.ts'
import { normaliseEmail, normalisePhone } from './recipients.ts'

/** A request that can be understood: normalised, but not yet compared with what the database knows. */
export interface SendCommand {
  readonly phone: string | null
  readonly email: string | null
  readonly body: string
  /** Of an e-mail; null: its first line. */
  readonly subject: string | null
  readonly leadId: string | null
  readonly channel: ChannelName | null
  readonly attachments: readonly Attachment[]
  readonly crmIds: CrmIds
}

type Parsed = { readonly command: SendCommand } | { readonly errors: readonly FieldError[] }
export type Fields = Readonly<Record<string, unknown>>

export const BODY_CHARS_MOST = 10_000
export const CRM_ID_CHARS_MOST = 200

/** Looks at every field, so that a person can mend all of them at once. Fields that we do not know are left alone. */
export function parseSend(given: unknown): Parsed {
  if (!isFields(given)) return { errors: [{ field: 'body', detail: 'is not a JSON object' }] }
  const errors: FieldError[] = []
  const refuse = (field: string, detail: string) => void errors.push({ field, detail })

  const phone = unlessEmpty('recipientPhone', normalisePhone, 'is not an E.164 phone number, such as +4915112345678')
  const email = unlessEmpty('recipientEmail', normaliseEmail, 'is not an e-mail address')
  const leadId = unlessEmpty('leadId', idOrNull, 'is not the id of a lead')
  const channel = optional('channel', channelOrNull, `is none of ${channelNames.join(', ')}`)
  const missing = ['recipientPhone', 'recipientEmail', 'leadId'].every((field) => isEmpty(given[field]))
  if (missing) {
    refuse('recipientPhone', 'is missing, and so is recipientEmail: a message needs a recipient')
    refuse('recipientEmail', 'is missing, and so is recipientPhone: a message needs a recipient')
  }
  const complaint = complaintAboutBody(given['message'])
  if (complaint !== null) refuse('message', complaint)
  const attachments = checkAttachments(given['attachments'], refuse)
  const crmIds = {
    ghlContactId: crmId('ghlContactId'),
    ghlLocationId: crmId('ghlLocationId'),
    hsContactId: crmId('hsContactId'),
    hsPortalId: crmId('hsPortalId'),
  }
  if (errors.length > 0) return { errors }
  const body = String(given['message'])
  return { command: { phone, email, leadId, channel, body, subject: null, attachments, crmIds } }

  function optional<T>(field: string, read: (text: string) => T | null, detail: string): T | null {
    const value = (given as Fields)[field]
    if (isAbsent(value)) return null
    const found = typeof value === 'string' ? read(value) : null
    if (found === null) refuse(field, detail)
    return found
  }

  /** CRMs send every field that they have, and an empty one means that it is not filled in. */
  function unlessEmpty<T>(field: string, read: (text: string) => T | null, detail: string): T | null {
    return isEmpty((given as Fields)[field]) ? null : optional(field, read, detail)
  }

  function crmId(field: string): string | null {
    const value = (given as Fields)[field]
    // Some CRMs count their records, and send the number. One that a double has rounded names another record.
    if (Number.isSafeInteger(value)) return String(value)
    return unlessEmpty(field, crmIdOrNull, `is no whole number and no string of 1 to ${CRM_ID_CHARS_MOST} characters`)
  }
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null
}

function isEmpty(value: unknown): boolean {
  return isAbsent(value) || value === ''
}

/** The text is neither trimmed nor normalised: one differing character makes another message. */
function complaintAboutBody(body: unknown): string | null {
  if (isAbsent(body)) return 'is missing'
  if (typeof body !== 'string') return 'is not a string'
  if (body === '') return 'is empty'
  return unstorable(body) ?? (charsOf(body) > BODY_CHARS_MOST ? `is longer than ${BODY_CHARS_MOST} characters` : null)
}

/** Our ids are short and plain; anything else cannot name a thing, and may not even reach the database. */
export function idOrNull(text: string): string | null {
  return /^[\x21-\x7e]{1,100}$/.test(text) ? text : null
}

function channelOrNull(text: string): ChannelName | null {
  return channelNames.find((name) => name === text) ?? null
}

function crmIdOrNull(text: string): string | null {
  const fits =
    text.trim() !== '' && text.length <= CRM_ID_CHARS_MOST && unstorable(text) === null && !/\p{Cc}/u.test(text)
  return fits ? text : null
}
