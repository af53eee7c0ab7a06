import type { Script, SqlTx } from 'onceonly'
import { ask } from '../script.ts'
import type { CrmIds, LeadRow } from './message.ts'
import { leadColumns } from './message.ts'
import { newId } from './new-id.ts'

export interface Recipient {
  readonly workspaceId: string
  readonly phone: string | null
  readonly email: string | null
}

interface FoundLead {
  readonly lead: LeadRow
  readonly created: boolean
}

/** Another process may insert the same phone or the same address in between, and then once more the other one. */
const RACES_MOST = 3

/**
 * The lead of a recipient, named, found or created. The phone decides: where it belongs to one lead and the e-mail address to
 * another, nothing is merged. Unique indexes make it atomic; the loser of a race reads what the winner wrote.
 */
export function* leadFor(
  to: Recipient,
  wanted: { readonly leadId: string | null; readonly crmIds: CrmIds; readonly now: number },
): Script<FoundLead> {
  const { leadId, crmIds, now } = wanted
  for (let tries = 1; tries <= RACES_MOST; tries++) {
    const known = leadId === null ? yield* findLead(to) : yield* namedLead(to, leadId)
    if (known !== null) return { lead: yield* completed(known, to, crmIds), created: false }
    const email = (yield* leadBy('email', to)) === null ? to.email : null
    const [lead] = yield* ask<LeadRow>(
      `insert into leads (id, workspace_id, phone, email, ghl_contact_id, ghl_location_id, hs_contact_id, hs_portal_id, created_at)
       values (?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing returning ${leadColumns}`,
      [newId('lead', now), to.workspaceId, to.phone, email, ...valuesOf(crmIds), now],
    )
    if (lead !== undefined) return { lead, created: true }
  }
  throw new Error('Others kept inserting leads with this phone or this e-mail address')
}

const BY_ID = `select ${leadColumns} from leads where workspace_id = ? and id = ?`

export async function leadById(
  sql: Pick<SqlTx, 'query'>,
  workspaceId: string,
  leadId: string,
): Promise<LeadRow | null> {
  return (await sql.query<LeadRow>(BY_ID, [workspaceId, leadId]))[0] ?? null
}

function* leadOfId(workspaceId: string, leadId: string): Script<LeadRow | null> {
  return (yield* ask<LeadRow>(BY_ID, [workspaceId, leadId]))[0] ?? null
}

/**
 * The lead of this id, unless the recipient is the phone, or the address, of another lead: then it is a message to that
 * one, whose conversation it belongs to. A phone is one human, whichever lead is named with it.
 */
function* namedLead(to: Recipient, leadId: string): Script<LeadRow | null> {
  const named = yield* leadOfId(to.workspaceId, leadId)
  const isIts = to.phone === null ? named?.email === to.email : named?.phone === to.phone
  return named === null || isIts ? named : ((yield* findLead(to)) ?? named)
}

function* findLead(to: Recipient): Script<LeadRow | null> {
  const byPhone = yield* leadBy('phone', to)
  if (byPhone !== null) return byPhone
  const byEmail = yield* leadBy('email', to)
  // The address of a person with another phone: a new phone is a new person.
  return byEmail !== null && (to.phone === null || byEmail.phone === null) ? byEmail : null
}

function* leadBy(part: 'phone' | 'email', to: Recipient): Script<LeadRow | null> {
  const value = to[part]
  if (value === null) return null
  const text = `select ${leadColumns} from leads where workspace_id = ? and ${part} = ?`
  return (yield* ask<LeadRow>(text, [to.workspaceId, value]))[0] ?? null
}

/** Fills in what the lead did not have yet; nothing that it has is replaced, except the ids of a CRM. */
function* completed(lead: LeadRow, to: Recipient, crmIds: CrmIds): Script<LeadRow> {
  const phone = lead.phone === null && (yield* leadBy('phone', to)) === null ? to.phone : null
  const email = lead.email === null && (yield* leadBy('email', to)) === null ? to.email : null
  const had = [lead.ghl_contact_id, lead.ghl_location_id, lead.hs_contact_id, lead.hs_portal_id]
  const ids = valuesOf(crmIds)
  if (phone === null && email === null && ids.every((id, at) => id === null || id === had[at])) return lead
  // Not what we read, but what is there now: another request may be filling in something else.
  const [row] = yield* ask<LeadRow>(
    `update leads set phone = coalesce(phone, ?), email = coalesce(email, ?),
       ghl_contact_id = coalesce(?, ghl_contact_id), ghl_location_id = coalesce(?, ghl_location_id),
       hs_contact_id = coalesce(?, hs_contact_id), hs_portal_id = coalesce(?, hs_portal_id)
     where id = ? returning ${leadColumns}`,
    [phone, email, ...ids, lead.id],
  )
  return row ?? lead
}

function valuesOf({ ghlContactId, ghlLocationId, hsContactId, hsPortalId }: CrmIds): (string | null)[] {
  return [ghlContactId, ghlLocationId, hsContactId, hsPortalId]
}

/** One conversation for a phone of a workspace; where there is only an e-mail address, one for its lead. */
export function* conversationFor(to: Recipient, leadId: string, now: number): Script<string> {
  const known = yield* conversationOf(to, leadId)
  if (known !== null) return known
  const [made] = yield* ask<{ id: string }>(
    `insert into conversations (id, workspace_id, phone, lead_id, created_at) values (?, ?, ?, ?, ?)
     on conflict do nothing returning id`,
    [newId('conv', now), to.workspaceId, to.phone, leadId, now],
  )
  const id = made?.id ?? (yield* conversationOf(to, leadId))
  if (id === null) throw new Error('A conversation was inserted by another process, and is not there')
  return id
}

function* conversationOf({ workspaceId, phone }: Recipient, leadId: string): Script<string | null> {
  const [row] =
    phone === null
      ? yield* ask<{ id: string }>('select id from conversations where lead_id = ? and phone is null', [leadId])
      : yield* ask<{ id: string }>('select id from conversations where workspace_id = ? and phone = ?', [
          workspaceId,
          phone,
        ])
  return row?.id ?? null
}
