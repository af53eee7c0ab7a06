import Type, { type Static } from 'typebox'
import { type Fields, ruled } from '../http/input.ts'
import type { FieldError } from '../http/problem.ts'
import { unstorable } from '../http/text.ts'
import { type Attachment, attachments, attachmentsOf } from './attachments.ts'
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

const BODY_CHARS_MOST = 10_000
const CRM_ID_CHARS_MOST = 200

/** CRMs send every field that they have, and an empty one means that it is not filled in. */
function unlessEmpty(isGood: (text: string) => boolean, errorMessage: string, options: object) {
  const schema = Type.Unsafe<string | null>({ type: ['string', 'null'], errorMessage, ...options })
  return Type.Optional(ruled(schema, (text) => (text === null || text === '' || isGood(text) ? null : errorMessage)))
}

const crmIdMessage = `is no whole number and no string of 1 to ${CRM_ID_CHARS_MOST} characters`
const crmId = Type.Optional(
  ruled(
    Type.Unsafe<string | number | null>({
      type: ['string', 'integer', 'null'],
      maxLength: CRM_ID_CHARS_MOST,
      description: 'A whole number is kept as its digits; an empty string is none.',
      errorMessage: crmIdMessage,
    }),
    (id) => (isCrmId(id) ? null : crmIdMessage),
  ),
)

/** A number that a double has rounded names another record. */
function isCrmId(id: string | number | null): boolean {
  if (typeof id === 'number') return Number.isSafeInteger(id)
  return id === null || id === '' || (id.trim() !== '' && unstorable(id) === null && !/\p{Cc}/u.test(id))
}

/** The text is neither trimmed nor normalised: one differing character makes another message. */
export const sendRequest = ruled(
  Type.Object(
    {
      recipientPhone: unlessEmpty(
        (text) => normalisePhone(text) !== null,
        'is not an E.164 phone number, such as +4915112345678',
        { description: 'E.164: + or 00 and digits. An empty string is none.', examples: ['+4915112345678'] },
      ),
      recipientEmail: unlessEmpty((text) => normaliseEmail(text) !== null, 'is not an e-mail address', {
        description: 'Compared in lower case. An empty string is none.',
      }),
      leadId: unlessEmpty(isId, 'is not the id of a lead', {
        description:
          'A known lead; without a recipient, its own are used. A recipient of another lead makes it a message to that one.',
      }),
      channel: Type.Optional(
        Type.Unsafe<ChannelName | null>({ type: ['string', 'null'], enum: [...channelNames, null] }),
      ),
      message: ruled(Type.String({ minLength: 1, maxLength: BODY_CHARS_MOST }), unstorable),
      attachments,
      ghlContactId: crmId,
      ghlLocationId: crmId,
      hsContactId: crmId,
      hsPortalId: crmId,
    },
    { anyOf: [{ required: ['recipientPhone'] }, { required: ['recipientEmail'] }, { required: ['leadId'] }] },
  ),
  withoutRecipient,
)

function withoutRecipient(fields: Fields): readonly FieldError[] {
  const isEmpty = (field: string) => [undefined, null, ''].includes(fields[field] as null)
  if (!['recipientPhone', 'recipientEmail', 'leadId'].every(isEmpty)) return []
  return [
    { field: 'recipientPhone', detail: 'is missing, and so is recipientEmail: a message needs a recipient' },
    { field: 'recipientEmail', detail: 'is missing, and so is recipientPhone: a message needs a recipient' },
  ]
}

/** Our ids are short and plain; anything else cannot name a thing, and may not even reach the database. */
export const ID_PATTERN = '^[\\x21-\\x7e]{1,100}$'
const idPattern = new RegExp(ID_PATTERN)

export function isId(text: string): boolean {
  return idPattern.test(text)
}

export function commandOf(request: Static<typeof sendRequest>): SendCommand {
  const { recipientPhone, recipientEmail, leadId, channel = null, message } = request
  return {
    phone: normalisePhone(recipientPhone ?? ''),
    email: normaliseEmail(recipientEmail ?? ''),
    leadId: leadId === undefined || leadId === '' ? null : leadId,
    channel,
    body: message,
    subject: null,
    attachments: attachmentsOf(request.attachments),
    crmIds: {
      ghlContactId: crmIdOf(request.ghlContactId),
      ghlLocationId: crmIdOf(request.ghlLocationId),
      hsContactId: crmIdOf(request.hsContactId),
      hsPortalId: crmIdOf(request.hsPortalId),
    },
  }
}

function crmIdOf(id: string | number | null = null): string | null {
  return id === null || id === '' ? null : String(id)
}
