import { randomUUID } from 'node:crypto'
import type { OutboxPort, SqlTx } from 'onceonly'
import { inTransaction } from '../messages/transaction.ts'
import type { Base } from '../store.ts'
import type { Quotas } from '../workspaces/quotas.ts'
import { messageId, topics } from './events.ts'
import type { SearchMetadata } from './metadata.ts'
import { insertSearch, isSearch, type Search } from './searches.ts'

export interface StartCommand extends SearchMetadata {
  readonly workspaceId: string
  /** By the store's clock. */
  readonly now: number
}

type Add = (message: { readonly topic: string; readonly key: string; readonly body: unknown }) => Promise<void>

/** The search and the news of it, in the transaction of the caller. @throws QuotaExceeded */
export async function startSearch(
  tx: SqlTx,
  { quotas, add, sql }: { readonly quotas: Quotas; readonly add: Add; readonly sql: Pick<Base['sql'], 'secret'> },
  search: Search,
): Promise<boolean> {
  // Where the answer to a commit was lost it is there already, and needs no more room.
  if (await isSearch(tx, search.searchId)) return false
  await quotas.check(tx, search.workspaceId, { imports: 1 })
  if (!(await insertSearch({ query: tx.query, secret: sql.secret }, search))) return false
  const { searchId, workspaceId, projectId, searchName, referenceFiles } = search
  const body = { workspaceId, projectId, searchId, searchName, referenceFiles }
  await add({ topic: topics.started, key: searchId, body })
  return true
}

/** An id is given out once: no caller can choose one, so none can choose one again. */
export function newSearch({ now, ...command }: StartCommand): Search {
  return { ...command, searchId: randomUUID(), createdAt: now }
}

/** For a caller without a key. The id is fixed before the first try, so that a commit whose answer was lost is found. */
export async function startUnkeyed(
  base: Base,
  { quotas, outbox }: { readonly quotas: Quotas; readonly outbox: OutboxPort<SqlTx> },
  search: Search,
): Promise<void> {
  const id = messageId('started', search.searchId)
  await inTransaction(base, (tx) =>
    startSearch(tx, { quotas, add: (message) => outbox.add(tx, { ...message, id }), sql: base.sql }, search),
  )
}
