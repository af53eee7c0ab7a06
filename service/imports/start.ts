import { randomUUID } from 'node:crypto'
import type { OutboxPort, SqlTx } from 'onceonly'
import { inTransaction } from '../messages/transaction.ts'
import type { Base } from '../store.ts'
import { messageId, topics } from './events.ts'
import type { SearchMetadata } from './metadata.ts'
import { insertSearch, type Search } from './searches.ts'

export interface StartCommand extends SearchMetadata {
  readonly workspaceId: string
  /** By the store's clock. */
  readonly now: number
}

type Add = (message: { readonly topic: string; readonly key: string; readonly body: unknown }) => Promise<void>

/** The search and the news of it, in the transaction of whoever asks. */
export async function startSearch(tx: SqlTx, add: Add, search: Search): Promise<boolean> {
  if (!(await insertSearch(tx, search))) return false
  const { searchId, workspaceId, projectId, searchName, referenceFiles } = search
  const body = { workspaceId, projectId, searchId, searchName, referenceFiles }
  await add({ topic: topics.started, key: searchId, body })
  return true
}

/** An id is given out once: nobody can choose one, so nobody can choose one again. */
export function newSearch({ now, ...command }: StartCommand): Search {
  return { ...command, searchId: randomUUID(), createdAt: now }
}

/** For a caller without a key. The id is fixed before the first try, so that a commit whose answer was lost is found. */
export async function startUnkeyed(base: Base, outbox: OutboxPort<SqlTx>, search: Search): Promise<void> {
  const id = messageId('started', search.searchId)
  await inTransaction(base, (tx) => startSearch(tx, (message) => outbox.add(tx, { ...message, id }), search))
}
