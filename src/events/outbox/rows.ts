import { limits } from '../../ledger/core/limits.ts'
import { together } from '../../ledger/store/held-rows.ts'
import type { SqlStore } from '../../ledger/store/port.ts'
import { numberOrNull, type RowOf, type SqlTx } from '../../ledger/store/sql.ts'
import { ownTransaction } from '../../ledger/store/wing-tables.ts'
import { partitionLeases, type Tenure } from './leases.ts'
import { type OutgoingMessage, outboxHeader } from './port.ts'
import { ROW_COLUMNS } from './tables.ts'

/** A row that waits to be published. */
export interface OutboxRow {
  readonly position: number
  readonly partition: number
  readonly addedAt: number
  readonly line: string
  readonly message: OutgoingMessage
  /** How often it was refused so far; null when its key is parked, so that it may only join the dead letters. */
  readonly attempts: number | null
}

/** A partition to look into, and how many rows of it to bring. Its part of the bytes of a batch is as large. */
export interface Wanted {
  readonly partition: number
  readonly rows: number
}

export interface Next {
  readonly now: number
  readonly rows: readonly OutboxRow[]
  /** Partitions that gave all that was asked of them, and may have more. */
  readonly full: ReadonlySet<number>
  /** No message waits in any partition, not even for its next attempt. */
  readonly isEmpty: boolean
}

export interface Refusal {
  readonly row: OutboxRow
  readonly reason: string
  readonly attempts: number
  /** How long its line waits now; null when it is given up. */
  readonly retryAfterMs: number | null
}

/** The statements of a relay. Those that write are refused by a fence that is not the partition's own any more. */
export interface Rows {
  /**
   * The next rows of each partition, in order, and the store's time. Always from the beginning: what is published is
   * gone, and a row that committed late is never behind us.
   */
  next(wanted: readonly Wanted[]): Promise<Next>
  /** Removes what the broker has confirmed; answers how many of them were still ours to remove. */
  mark(tenures: readonly Tenure[], rows: readonly OutboxRow[]): Promise<number>
  /** Counts refusals and parks those that were given up; answers those that counted. */
  fail(tenures: readonly Tenure[], refusals: readonly Refusal[]): Promise<readonly Refusal[]>
  /** Rows behind a parked one of their key join it; answers those that did. */
  hold(tenures: readonly Tenure[], rows: readonly OutboxRow[]): Promise<readonly OutboxRow[]>
}

type Row = RowOf<
  'outbox' | 'line' | 'id' | 'topic' | 'headers' | 'body',
  'now' | 'position' | 'partition' | 'added_at' | 'bytes' | 'number' | 'standing',
  'key'
>

/** What `standing` says besides a count of attempts. */
const PARKED = -1
const WAITING = -2

const ANY = 'SELECT 1 AS found FROM onceonly_outbox_rows ORDER BY position LIMIT 1'
const NOTHING = { now: 0, rows: [], full: new Set<number>(), isEmpty: true } as const

export const BEHIND = 'An earlier message of its key is parked.'

export function createRows(store: SqlStore): Rows {
  const { sql } = store
  const { dialect } = sql
  const leases = partitionLeases(sql)
  const now = `(SELECT ${sql.now})`
  // A look into a small table for each row, rather than a join: its plan stays the same however large the outbox is.
  const standing = `coalesce((SELECT CASE WHEN f.parked = 1 THEN ${PARKED} WHEN f.due_at <= ${now} THEN f.attempts
    ELSE ${WAITING} END FROM onceonly_outbox_failing AS f WHERE f.line = r.line), 0)`
  // The bytes before a row, so that the first one always fits, however large it is.
  const ofOne = `SELECT * FROM (SELECT due.*, sum(bytes) OVER (ORDER BY position) - bytes AS before_bytes FROM (
      SELECT r.*, ${standing} AS standing FROM onceonly_outbox_rows AS r
      WHERE r.partition = ? AND ${standing} > ${WAITING} ORDER BY r.position LIMIT ?) AS due) AS fit
    WHERE before_bytes < ?`
  const ours = `partition IN (SELECT partition FROM onceonly_outbox_partitions WHERE ${leases.held})`
  const positions = dialect.isOneOf('position')
  /** The last look found nothing, so that the next one probably finds nothing either. */
  let wasEmpty = false
  /** Lanes that look at the same time share one question. */
  const isEmpty = together(async () => (await sql.query(ANY)).length === 0)
  const listed = (numbers: readonly number[]) => dialect.numbersValue(numbers)

  /** Moves rows of one line to the dead letters. */
  async function park(tx: SqlTx, rows: readonly OutboxRow[], attempts: number, reason: string): Promise<void> {
    const list = listed(rows.map(({ position }) => position))
    await tx.query(
      `INSERT INTO onceonly_outbox_dead (${ROW_COLUMNS}, parked_at, attempts, reason)
         SELECT ${ROW_COLUMNS}, ${now}, CAST(? AS integer), CAST(? AS text) FROM onceonly_outbox_rows WHERE ${positions}`,
      [attempts, reason, list],
    )
    await tx.query(`DELETE FROM onceonly_outbox_rows WHERE ${positions}`, [list])
  }

  async function failOne(tx: SqlTx, { row, reason, attempts, retryAfterMs }: Refusal): Promise<void> {
    const parked = retryAfterMs === null && row.message.key !== null ? 1 : 0
    if (retryAfterMs === null) await park(tx, [row], attempts, reason)
    if (retryAfterMs === null && row.message.key === null) {
      await tx.query('DELETE FROM onceonly_outbox_failing WHERE line = ?', [row.line])
      return
    }
    await tx.query(
      `INSERT INTO onceonly_outbox_failing (line, partition, parked, attempts, due_at, reason)
         VALUES (?, ?, ?, ?, ${now} + ?, ?)
       ON CONFLICT (line) DO UPDATE SET parked = excluded.parked, attempts = excluded.attempts,
         due_at = excluded.due_at, reason = excluded.reason`,
      [row.line, row.partition, parked, attempts, retryAfterMs ?? 0, reason],
    )
  }

  return {
    async next(wanted) {
      // Nothing was asked: the lease may be renewed any moment.
      if (wanted.length === 0) return { ...NOTHING, isEmpty: false }
      // An empty outbox stays empty most of the time, and the question for every partition takes milliseconds.
      if (wasEmpty && (await isEmpty(null))) return NOTHING
      const shares = sharesOf(wanted)
      const text = wanted.map(() => ofOne).join(' UNION ALL ')
      const values = shares.flatMap(({ partition, rows, bytes }) => [partition, rows, bytes])
      const rows = await sql.query<Row>(
        `SELECT ${now} AS now, (SELECT id FROM onceonly_outbox_identity) AS outbox, found.* FROM (${text}) AS found`,
        values,
      )
      wasEmpty = rows.length === 0
      const found = rows.map(rowOf).toSorted((a, b) => a.position - b.position)
      return { now: Number(rows[0]?.now ?? 0), rows: found, full: fullOf(shares, rows), isEmpty: false }
    },
    async mark(tenures, rows) {
      if (rows.length === 0) return 0
      const failed = new Map(
        rows.filter(({ attempts }) => attempts !== 0).map(({ line, partition }) => [line, partition]),
      )
      const values = [listed(rows.map(({ position }) => position)), leases.listed(tenures)]
      const text = `DELETE FROM onceonly_outbox_rows WHERE ${positions} AND ${ours} RETURNING position`
      if (failed.size === 0) return (await sql.query(text, values)).length
      return await ownTransaction(store, async (tx) => {
        // Another relay that has the partition now may have parked the line: then only an operator frees it.
        const held = await leases.lock(tx, tenures)
        const gone = await tx.query(text, values)
        for (const [line, partition] of failed) {
          if (held.has(partition)) await tx.query('DELETE FROM onceonly_outbox_failing WHERE line = ?', [line])
        }
        return gone.length
      })
    },
    async fail(tenures, refusals) {
      if (refusals.length === 0) return []
      return await ownTransaction(store, async (tx) => {
        const held = await leases.lock(tx, tenures)
        const counted = refusals.filter(({ row }) => held.has(row.partition))
        for (const refusal of counted) await failOne(tx, refusal)
        return counted
      })
    },
    async hold(tenures, rows) {
      if (rows.length === 0) return []
      return await ownTransaction(store, async (tx) => {
        const held = await leases.lock(tx, tenures)
        const moved: OutboxRow[] = []
        for (const [line, behind] of Map.groupBy(rows, (row) => row.line)) {
          // Written to take its lock: a redrive that came first has freed the line, and its rows wait to be published.
          const text = 'UPDATE onceonly_outbox_failing SET parked = parked WHERE line = ? AND parked = 1 RETURNING line'
          if (!held.has(behind[0]?.partition ?? -1) || (await tx.query(text, [line])).length === 0) continue
          await park(tx, behind, 0, BEHIND)
          moved.push(...behind)
        }
        return moved
      })
    },
  }
}

interface Share extends Wanted {
  readonly bytes: number
}

/** One row more than its bytes comes of each, because a row may be larger than any share. */
function sharesOf(wanted: readonly Wanted[]): readonly Share[] {
  const all = wanted.reduce((sum, { rows }) => sum + rows, 0)
  return wanted.map((each) => ({ ...each, bytes: Math.ceil((limits.relayBatchBytes * each.rows) / all) }))
}

function fullOf(shares: readonly Share[], found: readonly Row[]): ReadonlySet<number> {
  const of = Map.groupBy(found, ({ partition }) => Number(partition))
  const full = shares.filter(({ partition, rows, bytes }) => {
    const own = of.get(partition) ?? []
    return own.length === rows || own.reduce((sum, row) => sum + Number(row.bytes), 0) >= bytes
  })
  return new Set(full.map(({ partition }) => partition))
}

function rowOf(row: Row): OutboxRow {
  const { id, topic, key, body, line, outbox } = row
  const standing = Number(row.standing)
  const sequence = numberOrNull(row.number)
  const own = JSON.parse(row.headers) as Record<string, string>
  const headers = sequence === null ? own : { ...own, [outboxHeader]: outbox }
  const message = { id, topic, key, sequence, body, headers }
  return {
    position: Number(row.position),
    partition: Number(row.partition),
    addedAt: Number(row.added_at),
    line,
    message,
    attempts: standing === PARKED ? null : standing,
  }
}
