import type { Static } from 'typebox'
import { oneOf } from '../http/input.ts'
import { instant, instantOrNull, named, record, text, textOrNull } from '../openapi/declaration.ts'
import { type ChannelName, channelNames } from './channels/channel.ts'

/** Times of the store are whole milliseconds; PostgreSQL hands them over as text. */
type StoredMs = number | string | bigint

export const statuses = ['queued', 'sending', 'sent', 'failed', 'unknown'] as const
export type Status = (typeof statuses)[number]

export interface MessageRow {
  readonly id: string
  readonly workspace_id: string
  readonly lead_id: string
  readonly conversation_id: string
  readonly recipient_phone: string | null
  readonly recipient_email: string | null
  readonly body: string
  readonly channel: ChannelName
  readonly status: Status
  readonly provider_message_id: string | null
  readonly error: string | null
  readonly new_lead: number
  readonly effect_key: string
  readonly key_claim: string | null
  readonly lock_hash: string
  /** When a queued message is tried again; null until its provider has put it off. */
  readonly due_at: StoredMs | null
  readonly created_at: StoredMs
  readonly status_at: StoredMs
  readonly sent_at: StoredMs | null
}

/** Everything but the attachments, which are large and only the sender needs. */
export const messageColumns = `id, workspace_id, lead_id, conversation_id, recipient_phone, recipient_email, body, channel,
  status, provider_message_id, error, new_lead, effect_key, key_claim, lock_hash, due_at, created_at, status_at, sent_at`

/** What clients see of a message. */
export const message = named(
  'Message',
  record({
    _id: text,
    workspaceId: text,
    leadId: text,
    conversationId: text,
    recipientPhone: textOrNull,
    recipientEmail: textOrNull,
    message: text,
    channel: oneOf(channelNames),
    status: oneOf(statuses),
    providerMessageId: textOrNull,
    error: textOrNull,
    createdAt: instant,
    sentAt: instantOrNull,
  }),
)
export type Message = Static<typeof message>

export function messageOf(row: MessageRow): Message {
  return {
    _id: row.id,
    workspaceId: row.workspace_id,
    leadId: row.lead_id,
    conversationId: row.conversation_id,
    recipientPhone: row.recipient_phone,
    recipientEmail: row.recipient_email,
    message: row.body,
    channel: row.channel,
    status: row.status,
    providerMessageId: row.provider_message_id,
    error: row.error,
    createdAt: isoOf(row.created_at),
    sentAt: row.sent_at === null ? null : isoOf(row.sent_at),
  }
}

export function isoOf(ms: StoredMs): string {
  return new Date(Number(ms)).toISOString()
}

export const crmIds = {
  ghlContactId: textOrNull,
  ghlLocationId: textOrNull,
  hsContactId: textOrNull,
  hsPortalId: textOrNull,
}
export type CrmIds = { readonly [Name in keyof typeof crmIds]: string | null }

export const noCrmIds: CrmIds = { ghlContactId: null, ghlLocationId: null, hsContactId: null, hsPortalId: null }

export interface LeadRow {
  readonly id: string
  readonly workspace_id: string
  readonly phone: string | null
  readonly email: string | null
  readonly ghl_contact_id: string | null
  readonly ghl_location_id: string | null
  readonly hs_contact_id: string | null
  readonly hs_portal_id: string | null
  readonly created_at: StoredMs
}

export const leadColumns =
  'id, workspace_id, phone, email, ghl_contact_id, ghl_location_id, hs_contact_id, hs_portal_id, created_at'

export function crmIdsOf(row: LeadRow): CrmIds {
  return {
    ghlContactId: row.ghl_contact_id,
    ghlLocationId: row.ghl_location_id,
    hsContactId: row.hs_contact_id,
    hsPortalId: row.hs_portal_id,
  }
}

/** What clients see of a lead. */
export const lead = named(
  'Lead',
  record({ _id: text, workspaceId: text, phone: textOrNull, email: textOrNull, ...crmIds, createdAt: instant }),
)

export function leadOf(row: LeadRow): Static<typeof lead> {
  return {
    _id: row.id,
    workspaceId: row.workspace_id,
    phone: row.phone,
    email: row.email,
    ...crmIdsOf(row),
    createdAt: isoOf(row.created_at),
  }
}

export interface ConversationRow {
  readonly id: string
  readonly workspace_id: string
  readonly phone: string | null
  readonly lead_id: string
  readonly created_at: StoredMs
}

/** What clients see of a conversation. */
export const conversation = named(
  'Conversation',
  record({ _id: text, workspaceId: text, leadId: text, phone: textOrNull, createdAt: instant }),
)

export function conversationOf(row: ConversationRow): Static<typeof conversation> {
  return {
    _id: row.id,
    workspaceId: row.workspace_id,
    leadId: row.lead_id,
    phone: row.phone,
    createdAt: isoOf(row.created_at),
  }
}
