import { HOUR, MINUTE } from '../../ledger/core/limits.ts'
import type { SqlSeam } from '../../ledger/store/sql.ts'

/** Latencies of one minute: how many fell into each of the histogram's buckets, the last one beyond all bounds. */
export interface LatencyLine {
  readonly count: number
  readonly sumMs: number
  /** Empty where the meter has no buckets. */
  readonly buckets: readonly number[]
}

/** What one process counted in one minute, and how the store stood at its end. */
export interface HistoryLine {
  /** The beginning of the minute, by the clock of the process. */
  readonly at: number
  readonly counts: Readonly<Record<string, number>>
  readonly latencies: Readonly<Record<string, LatencyLine>>
  readonly gauges: Readonly<Record<string, number>>
}

/** Keeps a day of minutes. */
export interface HistoryStorage {
  /** Replaces what the same process wrote for the same minute. */
  put(source: string, line: HistoryLine): Promise<void>
  /** The lines of all processes since then, oldest first. */
  since(at: number): Promise<readonly HistoryLine[]>
}

/** How long a minute is remembered. */
export const HISTORY_MS = 24 * HOUR
/** A day of minutes of a dozen processes: what one answer reads at the most. */
const LINES_READ_MOST = 20_000
const MINUTES_MOST = HISTORY_MS / MINUTE

/**
 * For every replica on the store, and over restarts.
 * @param prepare brings the tables of `operateMigrations` up to date
 * @param isThere whether the tables exist: reading creates none
 */
export function createSqlHistory(
  sql: SqlSeam,
  prepare: () => Promise<void>,
  isThere: () => Promise<boolean>,
): HistoryStorage {
  return {
    async put(source, { at, ...rest }) {
      await prepare()
      await sql.query('DELETE FROM onceonly_operator_history WHERE at < ?', [at - HISTORY_MS])
      await sql.query(
        `INSERT INTO onceonly_operator_history (at, source, line) VALUES (?, ?, ?)
         ON CONFLICT (at, source) DO UPDATE SET line = excluded.line`,
        [at, source, JSON.stringify(rest)],
      )
    },
    async since(at) {
      if (!(await isThere())) return []
      await prepare()
      const rows = await sql.query<{ at: unknown; line: string }>(
        `SELECT at, line FROM onceonly_operator_history WHERE at >= ? ORDER BY at DESC LIMIT ${LINES_READ_MOST}`,
        [at],
      )
      return rows
        .map((row) => ({ at: Number(row.at), ...(JSON.parse(row.line) as Omit<HistoryLine, 'at'>) }))
        .toReversed()
    },
  }
}

/** For a store that does not speak SQL: as long as this process. */
export function createMemoryHistory(): HistoryStorage {
  const lines = new Map<string, HistoryLine>()
  return {
    async put(source, line) {
      lines.set(`${source} ${line.at}`, line)
      const [oldest] = lines.keys()
      if (lines.size > MINUTES_MOST && oldest !== undefined) lines.delete(oldest)
    },
    since: async (at) => [...lines.values()].filter((line) => line.at >= at),
  }
}
