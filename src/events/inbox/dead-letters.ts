import { sha256Hex } from '../../ledger/core/digest.ts'
import { OnceError } from '../../ledger/core/errors.ts'
import { limits } from '../../ledger/core/limits.ts'
import type { RecordedFailure } from '../../ledger/outcome.ts'
import { unpackFailure } from '../../ledger/outcome.ts'
import type { Page } from '../../ledger/store/port.ts'
import type { RowOf, SqlSeam, SqlTx, SqlValue } from '../../ledger/store/sql.ts'
import type { IncomingMessage } from './port.ts'
import type { ParkReason } from './receipt.ts'

/** A message that was given up, whole, with the reason. */
export interface InboxDeadLetter {
  /** Names it for `redrive` and `purge`. */
  readonly letter: string
  readonly reason: ParkReason
  readonly failure: RecordedFailure['failure'] | null
  readonly failures: number
  /** By the store's clock. */
  readonly parkedAt: number
  readonly message: IncomingMessage
}

/** Which of them: every part that is given must fit. */
export interface InboxDeadLetterFilter {
  readonly letters?: readonly string[]
  readonly topic?: string
  readonly reason?: ParkReason
}

export interface Parking {
  readonly letter: string
  readonly key: string
  readonly message: IncomingMessage
  readonly reason: ParkReason
  /** Encoded. */
  readonly failure: string | null
  readonly failures: number
  readonly now: number
}

type Row = RowOf<'letter' | 'reason' | 'content', 'failures' | 'parked_at', 'failure'>

type Asks = Pick<SqlTx, 'query'>

/** The table of dead letters of one consumer. Nothing in it goes away by itself: people read it, redrive, purge. */
export interface DeadLetterBox {
  /** In the transaction that settles the message. A letter that is there already is overwritten: it is the same one. */
  put(tx: Asks, parking: Parking): Promise<void>
  /** Newest first. */
  list(
    filter: InboxDeadLetterFilter,
    page: { readonly limit: number; readonly cursor: string | null },
  ): Promise<Page<InboxDeadLetter>>
  oldest(filter: InboxDeadLetterFilter, limit: number): Promise<readonly InboxDeadLetter[]>
  remove(tx: Asks, letter: string): Promise<boolean>
  /** Other conflicting bodies under the same id. */
  countConflicts(key: string, otherThan: string): Promise<number>
  count(filter: InboxDeadLetterFilter): Promise<number>
}

const COLUMNS = 'letter, reason, failure, failures, parked_at, content'

export function createDeadLetterBox(sql: SqlSeam, consumer: string): DeadLetterBox {
  function where({ letters, topic, reason }: InboxDeadLetterFilter): {
    readonly text: string
    readonly values: SqlValue[]
  } {
    const values: SqlValue[] = [consumer]
    let text = 'consumer = ?'
    if (letters !== undefined) {
      if (letters.length > limits.pageRows) throw tooMany('letters', letters.length)
      text += letters.length === 0 ? ' AND 1 = 0' : ` AND letter IN (${letters.map(() => '?').join(', ')})`
      values.push(...letters)
    }
    if (topic !== undefined) {
      text += ' AND topic = ?'
      values.push(storable(topic))
    }
    if (reason !== undefined) {
      text += ' AND reason = ?'
      values.push(reason)
    }
    return { text, values }
  }

  return {
    async put(tx, { letter, key, message, reason, failure, failures, now }) {
      await tx.query(
        `INSERT INTO onceonly_inbox_dead_letters
             (consumer, letter, message, topic, reason, failure, failures, parked_at, content)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT (consumer, letter) DO UPDATE SET
           reason = excluded.reason, failure = excluded.failure, failures = excluded.failures,
           parked_at = excluded.parked_at, content = excluded.content`,
        [
          consumer,
          letter,
          key,
          storable(message.topic),
          reason,
          sql.secret(failure),
          failures,
          now,
          sql.secret(JSON.stringify(message)),
        ],
      )
    },
    async list(filter, { limit, cursor }) {
      const { text, values } = where(filter)
      const from = cursorParts(cursor)
      const after = from === null ? '' : ' AND (parked_at < ? OR (parked_at = ? AND letter < ?))'
      const rows = await sql.query<Row>(
        `SELECT ${COLUMNS} FROM onceonly_inbox_dead_letters WHERE ${text}${after}
           ORDER BY parked_at DESC, letter DESC LIMIT ${limit}`,
        from === null ? values : [...values, from.at, from.at, from.letter],
      )
      const last = rows.length === limit ? rows.at(-1) : undefined
      return { rows: rows.map(letterOf), cursor: last === undefined ? null : `${last.parked_at}:${last.letter}` }
    },
    async oldest(filter, limit) {
      const { text, values } = where(filter)
      const rows = await sql.query<Row>(
        `SELECT ${COLUMNS} FROM onceonly_inbox_dead_letters WHERE ${text} ORDER BY parked_at, letter LIMIT ${limit}`,
        values,
      )
      return rows.map(letterOf)
    },
    async remove(tx, letter) {
      const gone = await tx.query(
        'DELETE FROM onceonly_inbox_dead_letters WHERE consumer = ? AND letter = ? RETURNING letter',
        [consumer, letter],
      )
      return gone.length > 0
    },
    async countConflicts(key, otherThan) {
      const prefix = conflictsOf(key)
      const [row] = await sql.query<{ n: number | string }>(
        `SELECT count(*) AS n FROM onceonly_inbox_dead_letters
           WHERE consumer = ? AND letter > ? AND letter < ? AND letter <> ?`,
        [consumer, prefix, `${prefix}~`, otherThan],
      )
      return Number(row?.n ?? 0)
    },
    async count(filter) {
      const { text, values } = where(filter)
      const [row] = await sql.query<{ n: number | string }>(
        `SELECT count(*) AS n FROM onceonly_inbox_dead_letters WHERE ${text}`,
        values,
      )
      return Number(row?.n ?? 0)
    },
  }
}

const DIGITS = 32
const conflictsOf = (key: string) => `conflict:${sha256Hex(key).slice(0, DIGITS)}:`

/** The usual letter of a message is its key; a conflicting body has a letter of its own beside it. */
export function conflictLetter(key: string, presented: string): string {
  return conflictsOf(key) + sha256Hex(presented).slice(0, DIGITS)
}

function letterOf({ letter, reason, failure, failures, parked_at, content }: Row): InboxDeadLetter {
  return {
    letter,
    reason: reason as ParkReason,
    failure: failure === null ? null : unpackFailure(failure).failure,
    failures: Number(failures),
    parkedAt: Number(parked_at),
    message: JSON.parse(content) as IncomingMessage,
  }
}

function cursorParts(cursor: string | null): { readonly at: number; readonly letter: string } | null {
  if (cursor === null) return null
  const colon = cursor.indexOf(':')
  return { at: Number(cursor.slice(0, colon)) || 0, letter: cursor.slice(colon + 1) }
}

/** A column of text holds neither NUL nor half a surrogate pair; the message itself is kept whole beside it. */
function storable(text: string): string {
  return text.toWellFormed().replaceAll('\0', '�')
}

/** A page is bounded for every caller. */
export function rowsOf(limit: number | undefined): number {
  if (limit === undefined) return limits.pageRows
  if (!Number.isSafeInteger(limit) || limit < 1) throw tooMany('limit', limit)
  return Math.min(limit, limits.pageRows)
}

function tooMany(option: string, given: number): OnceError<'bad_option'> {
  const text = `\`${option}\` is from 1 to ${limits.pageRows}, not ${String(given)}.`
  return new OnceError('bad_option', text, { details: { option } })
}
