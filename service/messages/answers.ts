import Type, { type Static } from 'typebox'
import { oneOf } from '../http/input.ts'
import { named, record, text, textOrNull } from '../openapi/declaration.ts'
import type { CrmIds, LeadRow, Message, MessageRow } from './message.ts'
import { crmIds, crmIdsOf, message, messageOf, noCrmIds, statuses } from './message.ts'

export const sent = named(
  'SendAnswer',
  record(
    {
      success: Type.Boolean(),
      status: oneOf(statuses),
      duplicateOnly: Type.Unsafe<true>({
        type: 'boolean',
        enum: [true],
        description: 'Nothing was sent: the original is shown.',
      }),
      duplicateMessage: text,
      message: Type.Unsafe<Message | null>({
        oneOf: [message, { type: 'null' }],
        description: 'Null while the original is still in flight.',
      }),
      leadId: textOrNull,
      ...crmIds,
    },
    ['status', 'duplicateOnly', 'duplicateMessage'],
  ),
)

/** What `POST /api/messages` answers: the same to the first request and to its copies. */
export interface SendAnswer {
  readonly status: number
  readonly body: Static<typeof sent>
}

/** The message as it stands: a retry that comes later shows what became of it. */
export function sendAnswer(row: MessageRow, lead: LeadRow | null): SendAnswer {
  const { status } = row
  const body = { success: status !== 'failed', status, message: messageOf(row), ...idsOf(row, lead) }
  if (status === 'sent' || status === 'failed') return { status: row.new_lead === 1 ? 201 : 200, body }
  return { status: 202, body }
}

export function duplicateText(ageSeconds: number): string {
  return `Same message text already sent to this contact ${ageSeconds}s ago — returning existing message instead of sending again`
}

export function duplicateAnswer(row: MessageRow, lead: LeadRow | null, ageSeconds: number): SendAnswer {
  const duplicateMessage = duplicateText(ageSeconds)
  const found = { success: true, duplicateOnly: true, duplicateMessage, message: messageOf(row) } as const
  return { status: 200, body: { ...found, ...idsOf(row, lead) } }
}

const STILL_PROCESSED =
  'A previous identical request is still being processed — refusing to send again. Retry once the original completes.'

export const pendingAnswer: SendAnswer = {
  status: 200,
  body: {
    success: true,
    duplicateOnly: true,
    duplicateMessage: STILL_PROCESSED,
    message: null,
    leadId: null,
    ...noCrmIds,
  },
}

function idsOf(row: MessageRow, lead: LeadRow | null): CrmIds & { leadId: string } {
  return { leadId: row.lead_id, ...(lead === null ? noCrmIds : crmIdsOf(lead)) }
}
