import type { RoomDialect, RowOf, SqlSeam } from '../../ledger/store/sql.ts'
import type { ExchangedEntry, PublishedState, SendRequest, StoredEntry } from '../ports.ts'
import type { Entry, MessageContent } from '../protocol/protocol.ts'

/** An entry as its row has it. What nothing is ever looked up by stands together in `rest`. */
export type EntryRow = RowOf<
  'log' | 'client' | 'digest' | 'rest',
  'at' | 'n' | 'epoch' | 'cseq' | 'copy' | 'accepted_at'
>

export const ENTRY_COLUMNS = 'at, log, n, client, epoch, cseq, copy, digest, accepted_at, rest'

type Rest = MessageContent & Pick<Entry, 'after'>

export function entryOf(row: EntryRow): StoredEntry {
  return {
    // In its JSON form any value can be stored, also with characters that PostgreSQL takes in no text.
    ...(JSON.parse(row.rest) as Rest),
    log: row.log,
    n: Number(row.n),
    client: row.client,
    epoch: Number(row.epoch),
    cseq: Number(row.cseq),
    acceptedAtMs: Number(row.accepted_at),
    digest: row.digest,
    at: Number(row.at),
    copy: Number(row.copy) === 1,
  }
}

/** The element of an insert's array. */
export function elementOf({ secret }: Pick<SqlSeam, 'secret'>, room: string, entry: StoredEntry) {
  const { at, log, n, client, epoch, cseq, copy, digest, acceptedAtMs, ...kept } = entry
  const rest = JSON.stringify(kept satisfies Rest)
  const place = { room, at, log, n, client, epoch, cseq, copy: copy ? 1 : 0 }
  return { ...place, digest: secret(digest), acceptedAtMs, bytes: rest.length, rest: secret(rest) }
}

export function publishedElement(
  { secret }: Pick<SqlSeam, 'secret'>,
  room: string,
  { client, digest, place: { log, n } }: PublishedState,
) {
  return { room, client, digest: secret(digest), log, n }
}

/** What a message takes in its row, about. */
export function sizeOf({ seen, replyTo, body }: ExchangedEntry | SendRequest): number {
  return JSON.stringify({ seen, replyTo, body }).length
}

/** A member of an element, as a number. */
export function big(member: string): string {
  return `cast(e.value->>'${member}' as bigint)`
}

export function text(member: string): string {
  return `e.value->>'${member}'`
}

/**
 * Joins a table to the elements, and in this order. SQLite would otherwise scan the table, which has all rooms,
 * and read the whole array again for each row of it.
 */
export function joining(dialect: RoomDialect): string {
  return dialect.orderedJoin
}

export function elements(dialect: RoomDialect): string {
  return dialect.elementsOf('e')
}
