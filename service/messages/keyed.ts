import type { Base } from '../store.ts'
import type { MessageRow } from './message.ts'
import { messageColumns } from './message.ts'

/** For callers who keep a key of their own over days: what became of their message, and what may still become of it. */

export async function messageUnder({ sql }: Base, workspaceId: string, keyClaim: string): Promise<MessageRow | null> {
  const text = `select ${messageColumns} from messages where workspace_id = ? and key_claim = ?`
  return (await sql.query<MessageRow>(text, [workspaceId, keyClaim]))[0] ?? null
}

/** A message that its provider did not take for now goes back into the queue; any other stays as it is. */
export async function queueAgain(base: Base, workspaceId: string, keyClaim: string): Promise<void> {
  await base.sql.query(
    `update messages set status = 'queued', sender = null, error = null, not_now = 0, status_at = ?
     where workspace_id = ? and key_claim = ? and status = 'failed' and not_now = 1`,
    [await base.now(), workspaceId, keyClaim],
  )
}

export type Settlement =
  | { readonly kind: 'sent' }
  | { readonly kind: 'failed'; readonly error: string }
  /** It was not sent, and its key and its lock are free for another message. */
  | { readonly kind: 'not_done'; readonly error: string }

/** A person found out what became of a message that was unknown. Null when there is none. */
export async function settleUnknown(
  base: Base,
  workspaceId: string,
  keyClaim: string,
  settlement: Settlement,
): Promise<MessageRow | null> {
  const now = await base.now()
  const sent = settlement.kind === 'sent'
  const freed = settlement.kind === 'not_done' ? ', key_claim = null, lock_claim = null' : ''
  const [row] = await base.sql.query<MessageRow>(
    `update messages set status = ?, error = ?, status_at = ?, sent_at = ?${freed}
     where workspace_id = ? and key_claim = ? and status = 'unknown' returning ${messageColumns}`,
    [sent ? 'sent' : 'failed', sent ? null : settlement.error, now, sent ? now : null, workspaceId, keyClaim],
  )
  return row ?? null
}
