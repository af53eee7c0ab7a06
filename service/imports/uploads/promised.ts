import type { SqlTx } from 'onceonly'
import { inTransaction } from '../../messages/transaction.ts'
import type { Base } from '../../store.ts'
import { QuotaExceeded, type Quotas } from '../../workspaces/quotas.ts'
import type { Upload } from './storage.ts'

/** Room for the bytes of a file that is on its way, in the quota of its workspace. */
export interface PromisedBytes {
  /** Up to so many in all. Does nothing for a file that is stored. @throws QuotaExceeded */
  promise(workspaceId: string, upload: Upload, bytes: number): Promise<void>
  /** It does not come, for now. */
  forget(upload: Upload): Promise<void>
}

interface Row {
  readonly promised: number | string | null
  readonly stored_at: number | string | null
}

/** In the store, so that all processes count what is on its way to any of them. */
export function createPromisedBytes(base: Base, quotas: Quotas): PromisedBytes {
  return {
    promise: (workspaceId, { searchId, name }, bytes) =>
      inTransaction(base, async (tx: SqlTx) => {
        const [row] = await tx.query<Row>(
          'select promised, stored_at from import_uploads where search_id = ? and name = ?',
          [searchId, name],
        )
        if (row === undefined || row.stored_at !== null) return
        await quotas.check(tx, workspaceId, { 'upload-bytes': bytes - Number(row.promised ?? 0) })
        await tx.query(
          'update import_uploads set promised = ? where search_id = ? and name = ? and stored_at is null',
          [bytes, searchId, name],
        )
      }),
    async forget({ searchId, name }) {
      await base.sql.query(
        'update import_uploads set promised = null where search_id = ? and name = ? and stored_at is null',
        [searchId, name],
      )
    },
  }
}

/** Of a file whose length is not known, so much is promised ahead of what has come. */
const AHEAD_BYTES = 1_024 * 1_024

/** Passes the content on, as long as there is room for it. `declared` is null where a client did not say how long it is. */
export async function* withinPromise(
  content: AsyncIterable<Uint8Array>,
  declared: number | null,
  promise: (bytes: number) => Promise<void>,
): AsyncGenerator<Uint8Array> {
  let [bytes, promised] = [0, declared ?? 0]
  await promise(promised)
  for await (const chunk of content) {
    bytes += chunk.length
    if (bytes > promised) {
      promised = bytes + AHEAD_BYTES
      await promise(promised).catch(async (error: unknown) => {
        if (!(error instanceof QuotaExceeded)) throw error
        // The end of the file may still fit.
        promised = bytes
        await promise(promised)
      })
    }
    yield chunk
  }
}
