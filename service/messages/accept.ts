import type { Script } from 'onceonly'
import { ask } from '../script.ts'
import type { Base } from '../store.ts'
import type { Quotas } from '../workspaces/quotas.ts'
import type { Attachment } from './attachments.ts'
import type { ChannelName } from './channels/channel.ts'
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
  readonly channel: ChannelName
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
    return inScript(base, () => accept(base.sql, made, guarded, quotas))
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

function* accept(sql: Base['sql'], made: Try, guarded: boolean, quotas: Quotas): Script<Accepted> {
  const { draft, now } = made
  const { to, leadId, crmIds } = draft
  // 1. What an attempt under the same key wrote.
  const resumed = yield* resumedBy(made)
  if (resumed !== null) return resumed
  // 2. What was sent with the same content, whether or not its lock knows it.
  const original = guarded ? yield* takeContent(sql, made) : null
  if (original !== null) return original
  yield* quotas.within(to.workspaceId, { messages: 1, 'message-bytes': bytesOf(draft) })
  // 3. Who it goes to.
  const stored = { workspaceId: to.workspaceId, phone: sql.lookup(to.phone), email: sql.lookup(to.email) }
  const { lead, created } = yield* leadFor(stored, { leadId, crmIds, now })
  const conversationId = yield* conversationFor(stored, lead.id, now)
  // 4. The message itself. Its id and its key are unique, so a rival attempt waits here and then finds ours.
  const row = yield* insert(sql, made, { leadId: lead.id, conversationId, created })
  if (row !== null) return { kind: 'new', row, lead }
  const rival = (yield* resumedBy(made)) ?? (yield* writtenBefore(made.id))
  if (rival === null) throw new Error(`The message ${made.id} was inserted by another attempt, and is not there`)
  return rival
}

function* resumedBy({ id, claims: { keyClaim } }: Try): Script<Accepted | null> {
  if (keyClaim === null) return null
  const [row] = yield* ask<MessageRow>(`select ${messageColumns} from messages where key_claim = ?`, [keyClaim])
  if (row === undefined) return null
  return { kind: row.id === id ? 'new' : 'resumed', row }
}

/** By this very call, when the answer to its commit was lost. */
function* writtenBefore(id: string): Script<Accepted | null> {
  const [row] = yield* ask<MessageRow>(`select ${messageColumns} from messages where id = ?`, [id])
  return row === undefined ? null : { kind: 'new', row }
}

/**
 * Makes the message the original of its content, or returns the one that stands in its way: within the window that is any
 * but one of another lock, which was released since. The row serialises identical contents.
 */
function* takeContent(sql: Base['sql'], { id, draft, claims, now, windowStart }: Try): Script<Accepted | null> {
  const lockHash = sql.lookup(draft.lockHash)
  const { lockClaim } = claims
  const [taken] = yield* ask(
    `insert into message_originals (lock_hash, message_id, lock_claim, created_at) values (?, ?, ?, ?)
     on conflict (lock_hash) do update
       set message_id = excluded.message_id, lock_claim = excluded.lock_claim, created_at = excluded.created_at
       where message_originals.created_at <= ? or message_originals.lock_claim <> excluded.lock_claim
     returning lock_hash`,
    [lockHash, id, lockClaim, now, windowStart],
  )
  if (taken !== undefined) return null
  const [row] = yield* ask<MessageRow & { readonly lock_claim: string | null }>(
    `select ${messageColumns}, lock_claim from messages
     where id = (select message_id from message_originals where lock_hash = ?)`,
    [lockHash],
  )
  if (row === undefined) return null
  if (row.id === id) return { kind: 'new', row }
  // An attempt before us under the same lock, or one that the lock knows nothing of.
  const isOfLock = lockClaim !== null && row.lock_claim === lockClaim
  return isOfLock ? { kind: 'duplicate', row } : { kind: 'duplicate', row, withoutLock: true }
}

/** Lets the content go out again, as far as the database knows of it. False when it knows nothing. */
export async function forgetOriginal({ sql }: Base, lockHash: string): Promise<boolean> {
  const text = 'delete from message_originals where lock_hash = ? returning lock_hash'
  return (await sql.query(text, [sql.lookup(lockHash)])).length > 0
}

function* insert(
  sql: Base['sql'],
  { id, draft, claims, now }: Try,
  found: { readonly leadId: string; readonly conversationId: string; readonly created: boolean },
): Script<MessageRow | null> {
  const { to, body, subject, channel, attachments, lockHash } = draft
  const [inserted] = yield* ask(
    `insert into messages (id, workspace_id, lead_id, conversation_id, recipient_phone, recipient_email, body, subject, channel,
       attachments, status, new_lead, effect_key, lock_claim, key_claim, lock_hash, created_at, status_at)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'queued', ?, ?, ?, ?, ?, ?, ?) on conflict do nothing returning id`,
    [
      id,
      to.workspaceId,
      found.leadId,
      found.conversationId,
      sql.secret(to.phone),
      sql.secret(to.email),
      sql.secret(body),
      sql.secret(subject),
      channel,
      sql.secret(attachmentsText(attachments)),
      found.created ? 1 : 0,
      claims.effectKey,
      claims.lockClaim,
      claims.keyClaim,
      sql.lookup(lockHash),
      now,
      now,
    ],
  )
  if (inserted === undefined) return null
  return {
    id,
    workspace_id: to.workspaceId,
    lead_id: found.leadId,
    conversation_id: found.conversationId,
    recipient_phone: to.phone,
    recipient_email: to.email,
    body,
    channel,
    status: 'queued',
    provider_message_id: null,
    error: null,
    new_lead: found.created ? 1 : 0,
    effect_key: claims.effectKey,
    key_claim: claims.keyClaim,
    lock_hash: lockHash,
    due_at: null,
    created_at: now,
    status_at: now,
    sent_at: null,
  }
}

/** As the database has them; null without any. */
function attachmentsText(attachments: Draft['attachments']): string | null {
  return attachments.length === 0 ? null : JSON.stringify(attachments)
}

function bytesOf({ body, attachments }: Draft): number {
  return Buffer.byteLength(body) + Buffer.byteLength(attachmentsText(attachments) ?? '')
}
