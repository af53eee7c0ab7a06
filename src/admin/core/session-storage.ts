import type { SqlSeam } from '../../ledger/store/sql.ts'

/** A sign-in to the console. */
export interface StoredSession {
  readonly role: string
  readonly name: string
  /** Of the token that it was opened with: a token that was replaced ends its sessions. */
  readonly proof: string
}

/** Keeps sessions by the digest of their cookie, so that a reader of the table cannot use them. */
export interface SessionStorage {
  put(digest: string, session: StoredSession, ms: number): Promise<void>
  /** Null when there is none, or none any more. */
  get(digest: string): Promise<StoredSession | null>
  remove(digest: string): Promise<void>
}

/** A team at several screens has a few dozen; past this the oldest end, so that signing in cannot fill the table. */
const SESSIONS_MOST = 1_000

/**
 * For every replica on the store, and over restarts.
 * @param prepare brings the tables of `operateMigrations` up to date
 */
export function createSqlSessions(sql: SqlSeam, prepare: () => Promise<void>): SessionStorage {
  async function query<Row>(text: string, values: readonly (string | number)[]): Promise<readonly Row[]> {
    await prepare()
    return sql.query<Row>(text, values)
  }

  return {
    async put(digest, { role, name, proof }, ms) {
      await query(
        `DELETE FROM onceonly_operator_sessions WHERE ends_at <= ${sql.now} OR digest IN (
           SELECT digest FROM onceonly_operator_sessions ORDER BY ends_at DESC LIMIT ${SESSIONS_MOST} OFFSET ?)`,
        [SESSIONS_MOST - 1],
      )
      await query(
        `INSERT INTO onceonly_operator_sessions (digest, role, name, proof, ends_at) VALUES (?, ?, ?, ?, ${sql.now} + ?)`,
        [digest, role, name, proof, ms],
      )
    },
    async get(digest) {
      const [row] = await query<StoredSession>(
        `SELECT role, name, proof FROM onceonly_operator_sessions WHERE digest = ? AND ends_at > ${sql.now}`,
        [digest],
      )
      return row ?? null
    },
    async remove(digest) {
      await query('DELETE FROM onceonly_operator_sessions WHERE digest = ?', [digest])
    },
  }
}

/** For a store that does not speak SQL: as long as this process. */
export function createMemorySessions(nowMs: () => number = () => performance.now()): SessionStorage {
  const sessions = new Map<string, { readonly session: StoredSession; readonly endsAtMs: number }>()
  return {
    async put(digest, session, ms) {
      for (const [each, { endsAtMs }] of sessions) if (endsAtMs <= nowMs()) sessions.delete(each)
      const [oldest] = sessions.keys()
      if (sessions.size >= SESSIONS_MOST && oldest !== undefined) sessions.delete(oldest)
      sessions.set(digest, { session, endsAtMs: nowMs() + ms })
    },
    async get(digest) {
      const found = sessions.get(digest)
      return found !== undefined && found.endsAtMs > nowMs() ? found.session : null
    },
    remove: async (digest) => void sessions.delete(digest),
  }
}
