import { randomUUID } from 'node:crypto'
import type { SqlTx } from 'onceonly'
import type { Base } from '../store.ts'
import type { Quotas } from '../workspaces/quotas.ts'
import type { Attachment } from './attachments.ts'
import type { Recipient } from './leads.ts'
import { conversationFor, leadFor } from './leads.ts'
import type { CrmIds, MessageRow } from './message.ts'
import { messageColumns } from './message.ts'
import { inTransaction } from './transaction.ts'

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
    const id = `msg_${randomUUID()}`
    return inTransaction(base, async (tx) => {
      // 1. What an attempt before us wrote, we ourselves included when the answer to a commit was lost.
      const earlier = await earlierOne(tx, claims, now - windowMs)
      if (earlier !== null) return earlier.row.id === id ? { kind: 'new', row: earlier.row } : earlier
      // 2. What was sent without a lock, or while we have none: the database knows it, whatever the locks know.
      if (guarded) {
        const original = await takeContent(tx, { id, draft, claims, now, windowStart: now - windowMs })
        if (original !== null) return { kind: 'duplicate', row: original, withoutLock: true }
      }
      await quotas.check(tx, draft.to.workspaceId, { messages: 1, 'message-bytes': bytesOf(draft) })
      // 3. Who it goes to.
      const { lead, created } = await leadFor(tx, draft.to, { leadId: draft.leadId, crmIds: draft.crmIds, now })
      const conversationId = await conversationFor(tx, draft.to, lead.id, now)
      // 4. The message itself. Its claims are unique, so a rival attempt waits here and then finds ours.
      const row = await insert(tx, { id, draft, claims, leadId: lead.id, conversationId, created, now })
      if (row !== null) return { kind: 'new', row }
      const rival = await earlierOne(tx, claims, now - windowMs)
      if (rival === null) throw new Error('A message was inserted by a rival attempt, and is not there')
      return rival
    })
  }
}

/**
 * Makes the message the original of its content, and returns the one that stands in its way. A lock that was granted
 * replaces an original that had one; anything else within the window does not. The row serialises identical contents.
 */
async function takeContent(
  tx: SqlTx,
  parts: {
    readonly id: string
    readonly draft: Draft
    readonly claims: Claims
    readonly now: number
    readonly windowStart: number
  },
): Promise<MessageRow | null> {
  const { id, draft, claims, now, windowStart } = parts
  const guarded = claims.lockClaim === null ? 0 : 1
  const [taken] = await tx.query(
    `insert into message_originals (lock_hash, message_id, guarded, created_at) values (?, ?, ?, ?)
     on conflict (lock_hash) do update
       set message_id = excluded.message_id, guarded = excluded.guarded, created_at = excluded.created_at
       where message_originals.created_at <= ? or (message_originals.guarded = 1 and excluded.guarded = 1)
     returning lock_hash`,
    [draft.lockHash, id, guarded, now, windowStart],
  )
  if (taken !== undefined) return null
  const [original] = await tx.query<MessageRow>(
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

async function earlierOne(tx: SqlTx, { lockClaim, keyClaim }: Claims, windowStart: number): Promise<Accepted | null> {
  const [row] = await tx.query<MessageRow>(
    `select ${messageColumns} from messages where lock_claim = ? or key_claim = ?
     order by case when key_claim = ? then 0 else 1 end limit 1`,
    [lockClaim, keyClaim, keyClaim],
  )
  if (row === undefined) return null
  if (keyClaim !== null && row.key_claim === keyClaim) return { kind: 'resumed', row }
  if (Number(row.created_at) > windowStart) return { kind: 'duplicate', row }
  // A lock that was given back keeps its identity for a day, but the window of its message is over: it is free to go.
  await tx.query('update messages set lock_claim = null where id = ?', [row.id])
  return null
}

async function insert(
  tx: SqlTx,
  parts: {
    readonly id: string
    readonly draft: Draft
    readonly claims: Claims
    readonly leadId: string
    readonly conversationId: string
    readonly created: boolean
    readonly now: number
  },
): Promise<MessageRow | null> {
  const { id, draft, claims, leadId, conversationId, created, now } = parts
  const { to, body, subject, channel, attachments, lockHash } = draft
  const [row] = await tx.query<MessageRow>(
    `insert into messages (id, workspace_id, lead_id, conversation_id, recipient_phone, recipient_email, body, subject, channel,
       attachments, status, new_lead, effect_key, lock_claim, key_claim, lock_hash, created_at, status_at)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'queued', ?, ?, ?, ?, ?, ?, ?) on conflict do nothing returning ${messageColumns}`,
    [
      id,
      to.workspaceId,
      leadId,
      conversationId,
      to.phone,
      to.email,
      body,
      subject,
      channel,
      attachmentsText(attachments),
      created ? 1 : 0,
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
