import { limits } from '../../ledger/core/limits.ts'
import { hasEnded } from '../../ledger/store/ended.ts'
import { numberOrNull, type RowOf, type SqlSeam } from '../../ledger/store/sql.ts'

/** The earlier failures of a message. */
export interface Trouble {
  readonly failures: number
  /** Deliveries that began and never ended: the process went away under them. */
  readonly unfinished: number
  /** By the store's clock; 0 when it may be tried at once. */
  readonly retryAt: number
  /** When a repeated delivery last began, or failed. */
  readonly touchedAt: number
  /** The last failure, encoded. */
  readonly failure: string | null
  readonly failedAt: number | null
}

/** Counts failures apart from the transactions that they roll back. */
export interface Failures {
  get(message: string, now: number): Promise<Trouble>
  /** A repeated delivery begins: counted at once, because a process that dies cannot count afterwards. */
  begin(message: string, now: number): Promise<void>
  /**
   * It ended without a verdict on the message. Never fails: what cannot be written is made up for at the next begin.
   */
  end(message: string): Promise<void>
  /** It failed. Answers how often so far. */
  count(message: string, failed: { failure: string | null; now: number; begun: boolean }): Promise<number>
  delay(message: string, retryAt: number): Promise<void>
  forget(message: string): Promise<void>
  /** Removes a bounded number of those past their end. */
  sweep(): Promise<number>
}

type Row = RowOf<never, 'failures' | 'unfinished' | 'failed_at' | 'retry_at' | 'expires_at', 'failure'>

const NONE: Trouble = { failures: 0, unfinished: 0, retryAt: 0, touchedAt: 0, failure: null, failedAt: null }

export function createFailures(sql: SqlSeam, consumer: string, windowMs: number): Failures {
  const owed = new Map<string, number>()

  function owe(message: string): void {
    if (owed.has(message) || owed.size < limits.inboxOwedMessages) owed.set(message, (owed.get(message) ?? 0) + 1)
  }

  return {
    async get(message, now) {
      // A row past its end counts as swept: the message starts again.
      const [row] = await sql.query<Row>(
        `SELECT failures, unfinished, failure, failed_at, retry_at, expires_at FROM onceonly_inbox_failures
           WHERE consumer = ? AND message = ? AND expires_at > ?`,
        [consumer, message, now],
      )
      if (row === undefined) return NONE
      return {
        failures: Number(row.failures),
        unfinished: Math.max(0, Number(row.unfinished) - (owed.get(message) ?? 0)),
        retryAt: Number(row.retry_at),
        // Both restart its window.
        touchedAt: Number(row.expires_at) - windowMs,
        failure: row.failure,
        failedAt: numberOrNull(row.failed_at),
      }
    },
    async begin(message, now) {
      const ended = owed.get(message) ?? 0
      await sql.query(
        `INSERT INTO onceonly_inbox_failures AS f (consumer, message, failures, unfinished, retry_at, expires_at)
           VALUES (?, ?, 0, 1, 0, ?)
         ON CONFLICT (consumer, message) DO UPDATE SET
           failures = CASE WHEN f.expires_at <= ? THEN 0 ELSE f.failures END,
           unfinished = CASE WHEN f.expires_at <= ? OR f.unfinished <= ? THEN 1 ELSE f.unfinished - ? + 1 END,
           retry_at = CASE WHEN f.expires_at <= ? THEN 0 ELSE f.retry_at END,
           expires_at = excluded.expires_at`,
        [consumer, message, now + windowMs, now, now, ended, ended, now],
      )
      owed.delete(message)
    },
    async end(message) {
      try {
        await sql.query(
          `UPDATE onceonly_inbox_failures SET unfinished = unfinished - 1
             WHERE consumer = ? AND message = ? AND unfinished > 0`,
          [consumer, message],
        )
      } catch {
        owe(message)
      }
    },
    async count(message, { failure, now, begun }) {
      const [row] = await sql.query<Row>(
        `INSERT INTO onceonly_inbox_failures AS f
             (consumer, message, failures, unfinished, failure, failed_at, retry_at, expires_at)
           VALUES (?, ?, 1, 0, ?, ?, 0, ?)
         ON CONFLICT (consumer, message) DO UPDATE SET
           failures = CASE WHEN f.expires_at <= ? THEN 1 ELSE f.failures + 1 END,
           unfinished = CASE WHEN f.expires_at <= ? OR f.unfinished < ? THEN 0 ELSE f.unfinished - ? END,
           failure = excluded.failure,
           failed_at = excluded.failed_at,
           expires_at = excluded.expires_at
         RETURNING failures`,
        [consumer, message, sql.secret(failure), now, now + windowMs, now, now, begun ? 1 : 0, begun ? 1 : 0],
      )
      return Number(row?.failures ?? 1)
    },
    async delay(message, retryAt) {
      await sql.query('UPDATE onceonly_inbox_failures SET retry_at = ? WHERE consumer = ? AND message = ?', [
        retryAt,
        consumer,
        message,
      ])
    },
    async forget(message) {
      await sql.query('DELETE FROM onceonly_inbox_failures WHERE consumer = ? AND message = ?', [consumer, message])
    },
    async sweep() {
      if (!(await hasEnded(sql, { table: 'onceonly_inbox_failures', column: 'expires_at' }))) return 0
      const gone = await sql.query(
        `DELETE FROM onceonly_inbox_failures WHERE (consumer, message) IN (
           SELECT consumer, message FROM onceonly_inbox_failures WHERE expires_at <= (SELECT ${sql.now}) LIMIT ${limits.sweepRows}
         ) RETURNING 1`,
      )
      return gone.length
    },
  }
}
