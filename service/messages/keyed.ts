import type { Base } from '../store.ts'
import type { MessageRow } from './message.ts'
import { messageColumns } from './message.ts'

/** For callers that keep a key of their own over days: what became of their message. */
export async function messageUnder({ sql }: Base, workspaceId: string, keyClaim: string): Promise<MessageRow | null> {
  const text = `select ${messageColumns} from messages where workspace_id = ? and key_claim = ?`
  return (await sql.query<MessageRow>(text, [workspaceId, keyClaim]))[0] ?? null
}
