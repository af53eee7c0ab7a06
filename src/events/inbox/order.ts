import { sha256Hex } from '../../ledger/core/digest.ts'
import type { RowOf, SqlSeam, SqlTx } from '../../ledger/store/sql.ts'
import { outboxHeader } from '../outbox/port.ts'
import type { IncomingMessage } from './port.ts'

/** A place in the line of its key: the numbers that one outbox gave to the key's messages. */
export interface Place {
  readonly line: string
  readonly sequence: number
}

/** Where a line stands. */
export interface Line {
  /** The number that may be handled now. */
  readonly expected: number
  /** Since when a later one has been waiting for it, and which is the first of those; null when none does. */
  readonly waiting: { readonly since: number; readonly lowest: number } | null
}

/**
 * The next number of every line, per consumer. The row is the lock: who handles a key's message holds it until commit.
 */
export interface Order {
  /** Null for a message without a place: it may come at any time. */
  placeOf(message: IncomingMessage): Place | null
  /** Holds the line until the transaction ends. */
  hold(tx: SqlTx, place: Place): Promise<Line>
  /** The message was settled: the next one may come. */
  advance(tx: SqlTx, place: Place): Promise<void>
  /** An earlier message has not come yet. Answers how long the line has been waiting for it; null when it moved on. */
  wait(place: Place, look: Look): Promise<Line['waiting']>
  /** The next message in order has come and is redelivered after this time: until then a wait for it is not a hole. */
  putOff(place: Place, until: PutOff): Promise<void>
}

/** A message came before its turn. */
export interface Look {
  readonly expected: number
  readonly now: number
  /** The most that counts of the time since the last look: time without a consumer is not waiting time. */
  readonly mostMs: number
}

export interface PutOff {
  readonly delayMs: number
  /** What it passed over, and how long it had waited for that, as it will have then; null when it was its turn. */
  readonly passed: { readonly expected: number; readonly waitedMs: number } | null
}

/** The number of a key's first message. */
export const FIRST = 1

type Row = RowOf<never, 'expected' | 'waiting_since' | 'waiting_lowest'>

export function createOrder(sql: SqlSeam, consumer: string): Order {
  return {
    placeOf({ key, sequence, headers }) {
      if (key === null || sequence === null) return null
      // Senders that count without an outbox have one line per key.
      const outbox = headers?.[outboxHeader]
      const line = sha256Hex(JSON.stringify(outbox === undefined ? key : [outbox, key]))
      return { line, sequence }
    },
    async hold(tx, { line }) {
      // Written even when it is there: that takes the row's lock on every database.
      const [row] = await tx.query<Row>(
        `INSERT INTO onceonly_inbox_order AS o (consumer, line, expected) VALUES (?, ?, 1)
         ON CONFLICT (consumer, line) DO UPDATE SET expected = o.expected
         RETURNING expected, waiting_since, waiting_lowest`,
        [consumer, line],
      )
      return lineOf(row ?? { expected: 1, waiting_since: null, waiting_lowest: null })
    },
    async advance(tx, { line, sequence }) {
      await tx.query(
        `INSERT INTO onceonly_inbox_order AS o (consumer, line, expected) VALUES (?, ?, ?)
         ON CONFLICT (consumer, line) DO UPDATE SET
           expected = CASE WHEN o.expected < excluded.expected THEN excluded.expected ELSE o.expected END,
           waiting_since = NULL, waiting_lowest = NULL`,
        [consumer, line, sequence + 1],
      )
    },
    async wait({ line, sequence }, { expected, now, mostMs }) {
      // Unless the line has moved on meanwhile: then it is not the same wait any more.
      const [row] = await sql.query<Row>(
        `INSERT INTO onceonly_inbox_order AS o (consumer, line, expected, waiting_since, waiting_lowest, looked_at)
           VALUES (?, ?, ?, ?, ?, ?)
         ON CONFLICT (consumer, line) DO UPDATE SET
           waiting_since = CASE WHEN o.waiting_since IS NULL THEN excluded.waiting_since
             WHEN excluded.looked_at - o.looked_at > CAST(? AS bigint)
             THEN o.waiting_since + excluded.looked_at - o.looked_at - CAST(? AS bigint)
             ELSE o.waiting_since END,
           waiting_lowest = CASE WHEN o.waiting_lowest < excluded.waiting_lowest
             THEN o.waiting_lowest ELSE excluded.waiting_lowest END,
           looked_at = excluded.looked_at
           WHERE o.expected = excluded.expected
         RETURNING expected, waiting_since, waiting_lowest`,
        [consumer, line, expected, now, sequence, now, mostMs, mostMs],
      )
      return row === undefined ? null : lineOf(row).waiting
    },
    async putOff({ line, sequence }, { delayMs, passed }) {
      const expected = passed?.expected ?? sequence
      const values = [delayMs - (passed?.waitedMs ?? 0), passed === null ? null : sequence, consumer, line, expected]
      // A line without a row begins with its first message.
      if (sequence === FIRST) {
        const text =
          'INSERT INTO onceonly_inbox_order (consumer, line, expected) VALUES (?, ?, ?) ON CONFLICT DO NOTHING'
        await sql.query(text, [consumer, line, FIRST])
      }
      await sql.query(
        `UPDATE onceonly_inbox_order SET waiting_since = ${sql.now} + ?, waiting_lowest = ?, looked_at = ${sql.now}
           WHERE consumer = ? AND line = ? AND expected = ?`,
        values,
      )
    },
  }
}

function lineOf({ expected, waiting_since: since, waiting_lowest: lowest }: Row): Line {
  const waiting = since === null || lowest === null ? null : { since: Number(since), lowest: Number(lowest) }
  return { expected: Number(expected), waiting }
}
