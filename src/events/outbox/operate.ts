import { limits } from '../../ledger/core/limits.ts'
import type { Page, SqlStore } from '../../ledger/store/port.ts'
import { numberOrNull, type RowOf, type SqlSeam, type SqlTx, type SqlValue } from '../../ledger/store/sql.ts'
import type { WingTables } from '../../ledger/store/wing-tables.ts'
import { partitionTopic } from './add.ts'
import { unheldSql } from './leases.ts'
import type { OutgoingMessage } from './port.ts'
import { ROW_COLUMNS } from './tables.ts'

/** A message that was given up, or that waits behind one of its key that was. */
export interface OutboxDeadLetter {
  readonly message: OutgoingMessage
  readonly reason: string
  /** How often the broker refused it; 0 when it only waits behind another. */
  readonly attempts: number
  /** By the store's clock. */
  readonly addedAt: number
  readonly parkedAt: number
}

/** Which of them: every part that is given must fit. */
export interface OutboxDeadLetterFilter {
  readonly ids?: readonly string[]
  readonly topic?: string
  readonly key?: string
}

export interface OutboxActionOptions {
  /** Only reports what would be done. @default false */
  readonly preview?: boolean
  /** The most dead letters of one call. @default one page */
  readonly limit?: number
}

/** The dead letters of the outbox, for operators. */
export interface OutboxDeadLetters {
  /** Oldest first. */
  list(
    filter?: OutboxDeadLetterFilter,
    page?: { readonly limit?: number; readonly cursor?: string | null },
  ): Promise<Page<OutboxDeadLetter>>
  count(filter?: OutboxDeadLetterFilter): Promise<number>
  /**
   * Publishes them again, oldest first, as many as one page holds. A key goes as a whole, because its order is kept:
   * all of its dead letters are returned, also those that the filter leaves out.
   */
  redrive(filter: OutboxDeadLetterFilter, options?: OutboxActionOptions): Promise<readonly OutboxDeadLetter[]>
  /**
   * Removes them for good. The other dead letters of their key stay until they are redriven or purged; a consumer that checks
   * the order sees a hole in its numbers.
   */
  purge(filter: OutboxDeadLetterFilter, options?: OutboxActionOptions): Promise<readonly OutboxDeadLetter[]>
}

export interface OutboxStatus {
  /** Rows that wait to be published; counting stops at `limits.countRows`. */
  readonly pending: number
  /** How long the oldest of them has been waiting; 0 when there is none. */
  readonly lagMs: number
  /** Keys, or messages without one, that were refused and are tried again. */
  readonly failing: number
  /** Keys that wait for an operator. */
  readonly parkedKeys: number
  readonly deadLetters: number
  readonly relays: number
  /** Partitions that no relay holds: their rows wait. */
  readonly unheldPartitions: number
}

type Row = RowOf<
  'line' | 'id' | 'topic' | 'headers' | 'body' | 'reason',
  'position' | 'partition' | 'number' | 'added_at' | 'parked_at' | 'attempts',
  'key'
>

export function createDeadLetters({ sql }: SqlStore, tables: WingTables): OutboxDeadLetters {
  async function find(filter: OutboxDeadLetterFilter, limit: number, after = 0): Promise<readonly Row[]> {
    await tables.prepare()
    const { text, values } = where(sql, filter)
    return await sql.query<Row>(
      `SELECT * FROM onceonly_outbox_dead WHERE position > ? AND ${text} ORDER BY position LIMIT ?`,
      [after, ...values, limit],
    )
  }

  const ofLine = (asks: Pick<SqlTx, 'query'>, line: string) =>
    asks.query<Row>('SELECT * FROM onceonly_outbox_dead WHERE line = ? ORDER BY position', [line])

  /** Holds the line, so that no relay parks more of its rows meanwhile. */
  const holdLine = (tx: SqlTx, line: string) =>
    tx.query('UPDATE onceonly_outbox_failing SET parked = parked WHERE line = ? RETURNING line', [line])

  /** A line as a whole: its rows keep their positions, so that they stand before whatever was added since. */
  function redriveLine(line: string): Promise<readonly Row[]> {
    return tables.inTransaction(async (tx) => {
      await holdLine(tx, line)
      // Written to take their locks: a message without a key has no line to hold, and two people may redrive it at
      // once.
      const text = 'UPDATE onceonly_outbox_dead SET line = line WHERE line = ? RETURNING *'
      const rows = (await tx.query<Row>(text, [line])).toSorted((a, b) => Number(a.position) - Number(b.position))
      await tx.query(
        `INSERT INTO onceonly_outbox_rows (${ROW_COLUMNS})
           SELECT ${ROW_COLUMNS} FROM onceonly_outbox_dead WHERE line = ? ORDER BY position`,
        [line],
      )
      await tx.query('DELETE FROM onceonly_outbox_dead WHERE line = ?', [line])
      await tx.query('DELETE FROM onceonly_outbox_failing WHERE line = ?', [line])
      await tx.query(`SELECT ${sql.wake(partitionTopic(Number(rows[0]?.partition ?? 0)))}`)
      return rows
    })
  }

  function purgeOne({ line, position }: Row): Promise<boolean> {
    return tables.inTransaction(async (tx) => {
      await holdLine(tx, line)
      const text = 'DELETE FROM onceonly_outbox_dead WHERE position = ? RETURNING position'
      const gone = await tx.query(text, [Number(position)])
      // With its last dead letter a key is free again.
      await tx.query(
        `DELETE FROM onceonly_outbox_failing WHERE line = ? AND parked = 1
           AND NOT EXISTS (SELECT 1 FROM onceonly_outbox_dead AS d WHERE d.line = onceonly_outbox_failing.line)`,
        [line],
      )
      return gone.length > 0
    })
  }

  return {
    async list(filter = {}, { limit, cursor = null } = {}) {
      const most = pageRows(limit)
      const rows = await find(filter, most, cursor === null ? 0 : Number(cursor) || 0)
      const last = rows.length === most ? rows.at(-1) : undefined
      return { rows: rows.map(letterOf), cursor: last === undefined ? null : String(last.position) }
    },
    async count(filter = {}) {
      await tables.prepare()
      const { text, values } = where(sql, filter)
      return await countRows(sql, `onceonly_outbox_dead WHERE ${text}`, values)
    },
    async redrive(filter, { preview = false, limit } = {}) {
      const found = await find(filter, pageRows(limit))
      const done: Row[] = []
      for (const line of new Set(found.map((row) => row.line))) {
        done.push(...(preview ? await ofLine(sql, line) : await redriveLine(line)))
      }
      return done.map(letterOf)
    },
    async purge(filter, { preview = false, limit } = {}) {
      const found = await find(filter, pageRows(limit))
      const done: Row[] = []
      for (const row of found) if (preview || (await purgeOne(row))) done.push(row)
      return done.map(letterOf)
    },
  }
}

export async function statusOf(sql: SqlSeam): Promise<OutboxStatus> {
  const now = `(SELECT ${sql.now})`
  const [row] = await sql.query<Readonly<Record<string, unknown>>>(
    `SELECT ${now} AS now,
       (SELECT min(added_at) FROM onceonly_outbox_rows WHERE position = (SELECT min(position) FROM onceonly_outbox_rows)) AS oldest,
       (SELECT count(*) FROM onceonly_outbox_failing WHERE parked = 0) AS failing,
       (SELECT count(*) FROM onceonly_outbox_failing WHERE parked = 1) AS parked,
       (SELECT count(*) FROM onceonly_outbox_relays WHERE lease_until > ${now}) AS relays,
       (SELECT count(*) FROM onceonly_outbox_partitions WHERE ${unheldSql(now)}) AS unheld`,
  )
  const number = (name: string) => Number(row?.[name] ?? 0)
  return {
    pending: await countRows(sql, 'onceonly_outbox_rows', []),
    lagMs: row?.['oldest'] === null ? 0 : Math.max(0, number('now') - number('oldest')),
    failing: number('failing'),
    parkedKeys: number('parked'),
    deadLetters: await countRows(sql, 'onceonly_outbox_dead', []),
    relays: number('relays'),
    unheldPartitions: number('unheld'),
  }
}

async function countRows(sql: SqlSeam, from: string, values: readonly SqlValue[]): Promise<number> {
  const text = `SELECT count(*) AS n FROM (SELECT 1 FROM ${from} LIMIT ${limits.countRows}) AS counted`
  const [row] = await sql.query<{ n: unknown }>(text, values)
  return Number(row?.n ?? 0)
}

function where(
  sql: SqlSeam,
  { ids, topic, key }: OutboxDeadLetterFilter,
): {
  readonly text: string
  readonly values: readonly SqlValue[]
} {
  const values: SqlValue[] = []
  let text = '1 = 1'
  if (ids !== undefined) {
    text += ids.length === 0 ? ' AND 1 = 0' : ` AND id IN (${ids.map(() => '?').join(', ')})`
    values.push(...ids)
  }
  if (topic !== undefined) {
    text += ' AND topic = ?'
    values.push(topic)
  }
  if (key !== undefined) {
    text += ' AND key = ?'
    values.push(sql.lookup(key))
  }
  return { text, values }
}

function pageRows(limit: number = limits.pageRows): number {
  return Math.min(Math.max(1, Math.trunc(limit)), limits.pageRows)
}

function letterOf(row: Row): OutboxDeadLetter {
  const { id, topic, key, body, reason } = row
  const headers = JSON.parse(row.headers) as Record<string, string>
  const sequence = numberOrNull(row.number)
  return {
    message: { id, topic, key, sequence, body, headers },
    reason,
    attempts: Number(row.attempts),
    addedAt: Number(row.added_at),
    parkedAt: Number(row.parked_at),
  }
}
