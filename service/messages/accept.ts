import type { Script } from 'onceonly'
import { ask } from '../script.ts'
import type { Base } from '../store.ts'
import type { Quotas } from '../workspaces/quotas.ts'
import type { Attachment } from './attachments.ts'
import type { Recipient } from './leads.ts'
import { conversationFor, leadFor } from './leads.ts'
import type { CrmIds, LeadRow, MessageRow } from './message.ts'
import { messageColumns } from './message.ts'
import { newId } from './new-id.ts'
import { inScript } from './transaction.ts'

/** A message that passed every check and has a claim of its own. */
export interface Draft {
  readonly to: Recipient
  readonly leadId: string | null
  readonly crmIds: CrmIds
  readonly body: string
  readonly subject: string | null
  readonly channel: string
  readonly attachments: readonly Attachment[]
  readonly lockHash: string
}

export interface Claims {
  /** What the provider knows the message by: equal for every attempt at it. */
  readonly effectKey: string
  /** Of the lock; null where the message goes out without one. */
  readonly lockClaim: string | null
  /** Of the caller's key; null without one. */
  readonly keyClaim: string | null
}

export interface AcceptOptions {
  readonly windowMs: number
  /** Equal contents are one message: also where the lock of one of them could not be asked. */
  readonly guarded: boolean
  readonly quotas: Quotas
}

export interface Accepted {
  /**
   * `new`: written just now. The others were written by an earlier attempt that did not live to say so: one of the same
   * key, or one that only had the same content.
   */
  readonly kind: 'new' | 'resumed' | 'duplicate'
  readonly row: MessageRow
  /** Of a new message: saves the answer a read. */
  readonly lead?: LeadRow
  /** Of a duplicate that was accepted without this lock: the lock does not stand for it. */
  readonly withoutLock?: true
}

/**
 * The first durable fact: lead, conversation and message commit together, once for every claim.
 * Throws `QuotaExceeded` for a message that is new: retries and duplicates of what was accepted are answered.
 */
export function createAccept(base: Base, { windowMs, guarded, quotas }: AcceptOptions) {
  return async (draft: Draft, claims: Claims): Promise<Accepted> => {
    const now = await base.now()
    const made = { id: newId('msg', now), draft, claims, now, windowStart: now - windowMs }
    return inScript(base, () => accept(made, guarded, quotas))
  }
}

/** One try at accepting a message. */
interface Try {
  readonly id: string
  readonly draft: Draft
  readonly claims: Claims
  readonly now: number
  readonly windowStart: number
}

function* accept(made: Try, guarded: boolean, quotas: Quotas): Script<Accepted> {
  const { id, draft, claims, now, windowStart } = made
  const { to, leadId, crmIds } = draft
  // 1. What an attempt before us wrote, we ourselves included when the answer to a commit was lost.
  const earlier = yield* earlierOne(claims, windowStart)
  if (earlier !== null) return earlier.row.id === id ? { kind: 'new', row: earlier.row } : earlier
  // 2. What was sent without a lock, or while we have none: the database knows it, whatever the locks know.
  const original = guarded ? yield* takeContent(made) : null
  if (original !== null) return { kind: 'duplicate', row: original, withoutLock: true }
  yield* quotas.within(to.workspaceId, { messages: 1, 'message-bytes': bytesOf(draft) })
  // 3. Who it goes to.
  const { lead, created } = yield* leadFor(to, { leadId, crmIds, now })
  const conversationId = yield* conversationFor(to, lead.id, now)
  // 4. The message itself. Its claims are unique, so a rival attempt waits here and then finds ours.
  const row = yield* insert(made, { leadId: lead.id, conversationId, created })
  if (row !== null) return { kind: 'new', row, lead }
  const rival = yield* earlierOne(claims, windowStart)
  if (rival === null) throw new Error('A message was inserted by a rival attempt, and is not there')
  return rival
}

/**
 * Makes the message the original of its content, and returns the one that stands in its way. A lock that was granted
 * replaces an original that had one; anything else within the window does not. The row serialises identical contents.
 */
function* takeContent({ id, draft, claims, now, windowStart }: Try): Script<MessageRow | null> {
  const guarded = claims.lockClaim === null ? 0 : 1
  const [taken] = yield* ask(
    `insert into message_originals (lock_hash, message_id, guarded, created_at) values (?, ?, ?, ?)
     on conflict (lock_hash) do update
       set message_id = excluded.message_id, guarded = excluded.guarded, created_at = excluded.created_at
       where message_originals.created_at <= ? or (message_originals.guarded = 1 and excluded.guarded = 1)
     returning lock_hash`,
    [draft.lockHash, id, guarded, now, windowStart],
  )
  if (taken !== undefined) return null
  const [original] = yield* ask<MessageRow>(
    `select ${messageColumns} from messages where id = (select message_id from message_originals where lock_hash = ?)`,
    [draft.lockHash],
  )
  return original ?? null
}

/** Lets the content go out again, as far as the database knows of it. False when it knows nothing. */
export async function forgetOriginal({ sql }: Base, lockHash: string): Promise<boolean> {
  const text = 'delete from message_originals where lock_hash = ? returning lock_hash'
  return (await sql.query(text, [lockHash])).length > 0
}

function* earlierOne({ lockClaim, keyClaim }: Claims, windowStart: number): Script<Accepted | null> {
  const resumed = keyClaim === null ? null : yield* messageOf('key_claim', keyClaim)
  if (resumed !== null) return { kind: 'resumed', row: resumed }
  const row = lockClaim === null ? null : yield* messageOf('lock_claim', lockClaim)
  if (row === null) return null
  if (Number(row.created_at) > windowStart) return { kind: 'duplicate', row }
  // A lock that was given back keeps its identity for a day, but the window of its message is over: it is free to go.
  yield* ask('update messages set lock_claim = null where id = ?', [row.id])
  return null
}

function* messageOf(claim: 'key_claim' | 'lock_claim', value: string): Script<MessageRow | null> {
  const text = `select ${messageColumns} from messages where ${claim} = ?`
  return (yield* ask<MessageRow>(text, [value]))[0] ?? null
}

function* insert(
  { id, draft, claims, now }: Try,
  found: { readonly leadId: string; readonly conversationId: string; readonly created: boolean },
): Script<MessageRow | null> {
  const { to, body, subject, channel, attachments, lockHash } = draft
  const [row] = yield* ask<MessageRow>(
    `insert into messages (id, workspace_id, lead_id, conversation_id, recipient_phone, recipient_email, body, subject, channel,
       attachments, status, new_lead, effect_key, lock_claim, key_claim, lock_hash, created_at, status_at)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'queued', ?, ?, ?, ?, ?, ?, ?) on conflict do nothing returning ${messageColumns}`,
    [
      id,
      to.workspaceId,
      found.leadId,
      found.conversationId,
      to.phone,
      to.email,
      body,
      subject,
      channel,
      attachmentsText(attachments),
      found.created ? 1 : 0,
      claims.effectKey,
      claims.lockClaim,
      claims.keyClaim,
      lockHash,
      now,
      now,
    ],
  )
  return row ?? null
}

/** As the database has them; null without any. */
function attachmentsText(attachments: Draft['attachments']): string | null {
  return attachments.length === 0 ? null : JSON.stringify(attachments)
}

function bytesOf({ body, attachments }: Draft): number {
  return Buffer.byteLength(body) + Buffer.byteLength(attachmentsText(attachments) ?? '')
}
