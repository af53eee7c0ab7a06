import type { Base } from '../store.ts'
import type { ChatRetention } from './retention.ts'

/** Whose the names of clients are. */
export interface Owners {
  /** True when the name is the caller's from now on, or was before; false when it is somebody else's. */
  own(workspaceId: string, client: string, caller: string): Promise<boolean>
}

/** Forgotten along with an entrance: more than it adds, so that the table does not grow for ever. */
const FORGOTTEN_ROWS = 10

/** In the store, so that whoever comes to another server, or after a restart, meets the same answer. */
export function createOwners({ sql }: Base, { namesMs }: Pick<ChatRetention, 'namesMs'>): Owners {
  const claim = `insert into chat_clients (workspace_id, client, caller, seen_at) values (?, ?, ?, ${sql.now})
    on conflict (workspace_id, client) do update set seen_at = excluded.seen_at
      where chat_clients.caller = excluded.caller
    returning caller`
  const forget = `delete from chat_clients where (workspace_id, client) in (
    select workspace_id, client from chat_clients where seen_at < ${sql.now} - ? order by seen_at limit ?)`
  return {
    async own(workspaceId, client, caller) {
      await sql.query(forget, [namesMs, FORGOTTEN_ROWS])
      return (await sql.query(claim, [workspaceId, client, caller])).length > 0
    },
  }
}
