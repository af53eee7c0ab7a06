import { INBOX_ROOM } from '../../events/inbox/tables.ts'
import { OUTBOX_ROOM } from '../../events/outbox/tables.ts'
import type { Failure } from '../../ledger/core/verdict.ts'
import { unpackFailure } from '../../ledger/outcome.ts'
import type { Page } from '../../ledger/store/port.ts'
import type { SqlRow, SqlSeam, SqlValue } from '../../ledger/store/sql.ts'
import { quoted } from './quoted.ts'

/** A message that the relay or a consumer has given up: it waits until an operator redrives or purges it. */
export interface GivenUpMessage {
  readonly kind: 'dead_letter'
  /** Of the outbox the id of the message, of an inbox that of the letter. */
  readonly id: string
  /** Null: of the outbox. */
  readonly consumer: string | null
  readonly topic: string
  readonly since: number
  readonly attempts: number
  readonly failure: Failure | null
  /** The component that decided it. */
  readonly asked: string
  /** The commands that end it. */
  readonly end: string
}

export interface GivenUp {
  /** Oldest first. */
  outbox(limit: number, cursor: string | null): Promise<Page<GivenUpMessage>>
  /** By consumer. */
  inbox(limit: number, cursor: string | null): Promise<Page<GivenUpMessage>>
}

export function createGivenUp(sql: SqlSeam | undefined, has: (room: string) => Promise<boolean>): GivenUp {
  async function page(
    { room, text }: Box,
    values: readonly SqlValue[],
    limit: number,
    of: (row: SqlRow) => GivenUpMessage,
    cursorOf: (row: SqlRow) => string,
  ): Promise<Page<GivenUpMessage>> {
    if (sql === undefined || !(await has(room))) return { rows: [], cursor: null }
    const rows = await sql.query(text, [...values, limit])
    const last = rows.length < limit ? undefined : rows.at(-1)
    return { rows: rows.map(of), cursor: last === undefined ? null : cursorOf(last) }
  }

  return {
    outbox: (limit, cursor) =>
      page(outbox, [Number(cursor ?? 0) || 0], limit, ofOutbox, (row) => String(row['position'])),
    inbox(limit, cursor) {
      const [consumer = '', letter = ''] = (cursor ?? '').split(' ').map(decodeURIComponent)
      const written = (row: SqlRow) =>
        ['consumer', 'letter'].map((name) => encodeURIComponent(String(row[name]))).join(' ')
      return page(inbox, [consumer, letter], limit, ofInbox, written)
    },
  }
}

interface Box {
  readonly room: string
  readonly text: string
}

const outbox: Box = {
  room: OUTBOX_ROOM,
  text: `SELECT position, id, topic, reason, attempts, parked_at FROM onceonly_outbox_dead
    WHERE position > ? ORDER BY position LIMIT ?`,
}

const inbox: Box = {
  room: INBOX_ROOM,
  text: `SELECT consumer, letter, topic, reason, failure, failures, parked_at FROM onceonly_inbox_dead_letters
    WHERE (consumer, letter) > (?, ?) ORDER BY consumer, letter LIMIT ?`,
}

function ofOutbox(row: SqlRow): GivenUpMessage {
  const id = String(row['id'])
  return {
    kind: 'dead_letter',
    id,
    consumer: null,
    topic: String(row['topic']),
    since: Number(row['parked_at']),
    attempts: Number(row['attempts']),
    failure: { name: 'Error', message: String(row['reason']) },
    asked: 'not published',
    end: endOf(`outbox redrive ${quoted(id)}`, `outbox purge ${quoted(id)}`),
  }
}

function ofInbox(row: SqlRow): GivenUpMessage {
  const [id, consumer, failure] = [String(row['letter']), String(row['consumer']), row['failure']]
  const named = `${quoted(consumer)} ${quoted(id)}`
  return {
    kind: 'dead_letter',
    id,
    consumer,
    topic: String(row['topic']),
    since: Number(row['parked_at']),
    attempts: Number(row['failures']),
    failure: typeof failure === 'string' ? unpackFailure(failure).failure : null,
    asked: `given up as ${String(row['reason'])}`,
    end: endOf(`inbox redrive ${named}`, `inbox purge ${named}`),
  }
}

function endOf(redrive: string, purge: string): string {
  return `onceonly ${redrive}, or: onceonly ${purge}`
}
