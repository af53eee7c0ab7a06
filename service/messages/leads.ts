import { randomUUID } from 'node:crypto'
import type { SqlTx } from 'onceonly'
import type { CrmIds, LeadRow } from './message.ts'
import { leadColumns } from './message.ts'

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
 * The lead of a recipient, found or created. The phone decides: where it belongs to one lead and the e-mail address to
 * another, nothing is merged. Unique indexes make it atomic; the loser of a race reads what the winner wrote.
 */
export async function leadFor(
  tx: SqlTx,
  to: Recipient,
  wanted: { readonly leadId: string | null; readonly crmIds: CrmIds; readonly now: number },
): Promise<FoundLead> {
  const { leadId, crmIds, now } = wanted
  for (let tries = 1; tries <= RACES_MOST; tries++) {
    const known = leadId === null ? await findLead(tx, to) : await leadById(tx, to.workspaceId, leadId)
    if (known !== null) return { lead: await completed(tx, known, to, crmIds), created: false }
    const email = (await leadBy('email', tx, to)) === null ? to.email : null
    const [lead] = await tx.query<LeadRow>(
      `insert into leads (id, workspace_id, phone, email, ghl_contact_id, ghl_location_id, hs_contact_id, hs_portal_id, created_at)
       values (?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing returning ${leadColumns}`,
      [`lead_${randomUUID()}`, to.workspaceId, to.phone, email, ...valuesOf(crmIds), now],
    )
    if (lead !== undefined) return { lead, created: true }
  }
  throw new Error('Others kept inserting leads with this phone or this e-mail address')
}

export async function leadById(
  sql: Pick<SqlTx, 'query'>,
  workspaceId: string,
  leadId: string,
): Promise<LeadRow | null> {
  const text = `select ${leadColumns} from leads where workspace_id = ? and id = ?`
  return (await sql.query<LeadRow>(text, [workspaceId, leadId]))[0] ?? null
}

async function findLead(tx: SqlTx, to: Recipient): Promise<LeadRow | null> {
  const byPhone = await leadBy('phone', tx, to)
  if (byPhone !== null) return byPhone
  const byEmail = await leadBy('email', tx, to)
  // The address of a person with another phone: a new phone is a new person.
  return byEmail !== null && (to.phone === null || byEmail.phone === null) ? byEmail : null
}

async function leadBy(part: 'phone' | 'email', tx: SqlTx, to: Recipient): Promise<LeadRow | null> {
  const value = to[part]
  if (value === null) return null
  const text = `select ${leadColumns} from leads where workspace_id = ? and ${part} = ?`
  return (await tx.query<LeadRow>(text, [to.workspaceId, value]))[0] ?? null
}

/** Fills in what the lead did not have yet; nothing that it has is replaced, except the ids of a CRM. */
async function completed(tx: SqlTx, lead: LeadRow, to: Recipient, crmIds: CrmIds): Promise<LeadRow> {
  const phone = lead.phone === null && (await leadBy('phone', tx, to)) === null ? to.phone : null
  const email = lead.email === null && (await leadBy('email', tx, to)) === null ? to.email : null
  const had = [lead.ghl_contact_id, lead.ghl_location_id, lead.hs_contact_id, lead.hs_portal_id]
  const ids = valuesOf(crmIds)
  if (phone === null && email === null && ids.every((id, at) => id === null || id === had[at])) return lead
  // Not what we read, but what is there now: another request may be filling in something else.
  const [row] = await tx.query<LeadRow>(
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
export async function conversationFor(tx: SqlTx, to: Recipient, leadId: string, now: number): Promise<string> {
  const { workspaceId, phone } = to
  const find = async () => {
    const [row] =
      phone === null
        ? await tx.query<{ id: string }>('select id from conversations where lead_id = ? and phone is null', [leadId])
        : await tx.query<{ id: string }>('select id from conversations where workspace_id = ? and phone = ?', [
            workspaceId,
            phone,
          ])
    return row?.id ?? null
  }
  const known = await find()
  if (known !== null) return known
  const [made] = await tx.query<{ id: string }>(
    `insert into conversations (id, workspace_id, phone, lead_id, created_at) values (?, ?, ?, ?, ?)
     on conflict do nothing returning id`,
    [`conv_${randomUUID()}`, workspaceId, phone, leadId, now],
  )
  const id = made?.id ?? (await find())
  if (id === null) throw new Error('A conversation was inserted by another process, and is not there')
  return id
}
