import { HOUR } from 'onceonly'
import { inTransaction } from '../messages/transaction.ts'
import type { Base } from '../store.ts'
import type { Quotas } from '../workspaces/quotas.ts'
import { rowSweep, type Sweep, unheld } from '../workspaces/retention.ts'
import { unlessFull } from './refusal.ts'
import type { ChatRetention } from './retention.ts'

/** The owner of each client's name. */
export interface Owners {
  /**
   * Null when the name is the caller's from now on, or was before; `taken` when it is another caller's; a text where the
   * workspace has no place for one more name.
   */
  refuses(workspaceId: string, client: string, caller: string): Promise<string | { readonly taken: string } | null>
  readonly sweep: Sweep
}

/** The time is written so often at most: a client that comes in every second is one visit. */
const SEEN_EVERY_MS = 1 * HOUR
/** Names that one step of the sweep removes. */
const SWEPT_NAMES = 1_000

const TAKEN = { taken: 'this client belongs to another caller' }

/** In the store, so that another server, or this one after a restart, gives the same answer. */
export function createOwners(base: Base, quotas: Quotas, { namesMs }: Pick<ChatRetention, 'namesMs'>): Owners {
  const { sql } = base
  const forget = `delete from chat_clients where (workspace_id, client) in (
    select workspace_id, client from chat_clients where seen_at < ${sql.now} - ? order by seen_at limit ? ${unheld(base)})
    returning client`
  const seen = `update chat_clients set seen_at = ${sql.now}
    where workspace_id = ? and client = ? and seen_at < ${sql.now} - ?`
  const add = `insert into chat_clients (workspace_id, client, caller, seen_at) values (?, ?, ?, ${sql.now})
    on conflict do nothing`

  async function ownerOf(workspaceId: string, client: string): Promise<string | null> {
    const text = 'select caller from chat_clients where workspace_id = ? and client = ?'
    const [row] = await sql.query<{ readonly caller: string }>(text, [workspaceId, client])
    return row?.caller ?? null
  }

  return {
    async refuses(workspaceId, client, caller) {
      const owner = await ownerOf(workspaceId, client)
      if (owner !== null && owner !== caller) return TAKEN
      if (owner === caller) {
        await sql.query(seen, [workspaceId, client, SEEN_EVERY_MS])
        return null
      }
      const full = await unlessFull(() =>
        inTransaction(base, async (tx) => {
          await quotas.check(tx, workspaceId, { clients: 1 })
          await tx.query(add, [workspaceId, client, sql.secret(caller)])
        }),
      )
      // Of two who come at once with one name, one has it.
      return full ?? ((await ownerOf(workspaceId, client)) === caller ? null : TAKEN)
    },
    sweep: rowSweep(base, 'chat clients', forget, {
      values: [namesMs],
      most: SWEPT_NAMES,
      from: { text: 'select min(seen_at) from chat_clients', agoMs: namesMs },
    }),
  }
}
