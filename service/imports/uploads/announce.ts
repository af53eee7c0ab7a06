import { MINUTE } from 'onceonly'
import { failureLog } from '../../events/log.ts'
import { inTransaction } from '../../messages/transaction.ts'
import type { ServerParts } from '../../parts.ts'
import { startIdleRounds } from '../../rounds.ts'
import { messageId, topics } from '../events.ts'
import { UPLOAD_TIMEOUT_MS } from '../saga.ts'
import { type Accepted, acceptFile } from '../searches.ts'
import { notificationOf } from './notification.ts'
import type { Storage, StoredFile, Upload } from './storage.ts'

/** The voice of the storage: every stored file is announced, at least once. */
export interface Announcer {
  /** Answers whether the file has this content: the store keeps the first that it accepted. */
  announce(upload: Upload, file: StoredFile): Promise<Accepted>
  /** Files that a crash left without an announcement, found and announced. Answers how many. */
  round(): Promise<number>
  stop(): Promise<void>
}

interface Parts extends Pick<ServerParts, 'base' | 'outbox' | 'log'> {
  readonly storage: Storage
}

/** Declared files of one round; the next one starts behind them. */
const ROWS = 200
/** An import that has timed out takes no files. */
const WATCHED_MS = UPLOAD_TIMEOUT_MS + 10 * MINUTE

interface MissingRow {
  readonly search_id: string
  readonly name: string
}

export function startAnnouncer({ base, outbox, storage, log }: Parts): Announcer {
  const report = failureLog(log, 'imports.announce_failed')
  let behind: MissingRow = { search_id: '', name: '' }

  async function announce(upload: Upload, file: StoredFile): Promise<Accepted> {
    const { searchId, name } = upload
    const storedAt = await base.now()
    return await inTransaction(base, async (tx) => {
      // The first one announces it: both are there after the commit, or neither is.
      const accepted = await acceptFile(tx, upload, file, storedAt)
      if (accepted !== 'first') return accepted
      const body = notificationOf({ bucket: storage.bucket, key: storage.keyOf(upload), file, storedAt })
      const id = messageId('stored', searchId, name)
      await outbox.add(tx, { id, topic: topics.storage, key: searchId, body })
      return accepted
    })
  }

  async function look(): Promise<'idle' | 'busy'> {
    return (await lookAround()).declared === 0 ? 'idle' : 'busy'
  }

  function reportBusy(error: unknown): 'busy' {
    report(error)
    return 'busy'
  }

  async function lookAround(): Promise<{ readonly declared: number; readonly found: number }> {
    const rows = await base.sql.query<MissingRow>(
      `select u.search_id, u.name from import_uploads u join import_searches s on s.search_id = u.search_id
       where u.stored_at is null and s.created_at > (select ${base.sql.now}) - ? and (u.search_id > ? or (u.search_id = ? and u.name > ?))
       order by u.search_id, u.name limit ?`,
      [WATCHED_MS, behind.search_id, behind.search_id, behind.name, ROWS],
    )
    behind = rows.length < ROWS ? { search_id: '', name: '' } : (rows.at(-1) ?? behind)
    let found = 0
    for (const { search_id: searchId, name } of rows) {
      const file = await storage.look({ searchId, name })
      if (file === null) continue
      await announce({ searchId, name }, file)
      found++
    }
    return { declared: rows.length, found }
  }

  const tidied = storage.tidy().catch(report)
  const rounds = startIdleRounds(base, 'uploads', storage.lookEveryMs, () => look().catch(reportBusy))
  return {
    announce,
    round: async () => (await lookAround()).found,
    async stop() {
      await rounds.stop()
      await tidied
    },
  }
}
