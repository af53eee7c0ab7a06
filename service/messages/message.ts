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
  readonly channel: string
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
export interface Message {
  readonly _id: string
  readonly workspaceId: string
  readonly leadId: string
  readonly conversationId: string
  readonly recipientPhone: string | null
  readonly recipientEmail: string | null
  readonly message: string
  readonly channel: string
  readonly status: Status
  readonly providerMessageId: string | null
  readonly error: string | null
  readonly createdAt: string
  readonly sentAt: string | null
}

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

export interface CrmIds {
  readonly ghlContactId: string | null
  readonly ghlLocationId: string | null
  readonly hsContactId: string | null
  readonly hsPortalId: string | null
}

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
export function leadOf(row: LeadRow) {
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
export function conversationOf(row: ConversationRow) {
  return {
    _id: row.id,
    workspaceId: row.workspace_id,
    leadId: row.lead_id,
    phone: row.phone,
    createdAt: isoOf(row.created_at),
  }
}
