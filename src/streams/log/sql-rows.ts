import { dialects } from '../../ledger/store/dialect.ts'
import type { Dialect } from '../../ledger/store/sql.ts'
import type { ExchangedEntry, StoredEntry } from '../ports.ts'
import type { Entry } from '../protocol/protocol.ts'

/** An entry as its row has it. What nothing is ever looked up by stands together in `rest`. */
export interface EntryRow {
  readonly at: unknown
  readonly log: string
  readonly n: unknown
  readonly client: string
  readonly epoch: unknown
  readonly cseq: unknown
  readonly copy: unknown
  readonly digest: string
  readonly accepted_at: unknown
  readonly rest: string
}

export const ENTRY_COLUMNS = 'at, log, n, client, epoch, cseq, copy, digest, accepted_at, rest'

type Rest = Pick<Entry, 'seen' | 'after' | 'replyTo' | 'body'>

export function entryOf(row: EntryRow): StoredEntry {
  // In its JSON form any value can be stored, also with characters that PostgreSQL takes in no text.
  const { seen, after, replyTo, body } = JSON.parse(row.rest) as Rest
  return {
    log: row.log,
    n: Number(row.n),
    client: row.client,
    epoch: Number(row.epoch),
    cseq: Number(row.cseq),
    seen,
    after,
    replyTo,
    body,
    acceptedAtMs: Number(row.accepted_at),
    digest: row.digest,
    at: Number(row.at),
    copy: Number(row.copy) === 1,
  }
}

/** The element of an insert's array. */
export function elementOf(room: string, entry: StoredEntry) {
  const { log, n, client, epoch, cseq, copy, digest, acceptedAtMs, at } = entry
  const rest = restOf(entry)
  return { room, at, log, n, client, epoch, cseq, copy: copy ? 1 : 0, digest, acceptedAtMs, bytes: rest.length, rest }
}

export function restOf({ seen, after, replyTo, body }: Rest | ExchangedEntry): string {
  return JSON.stringify({ seen, after, replyTo, body } satisfies Rest)
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
export function joining(dialect: Dialect): string {
  return dialects[dialect].orderedJoin
}

export function elements(dialect: Dialect): string {
  return dialects[dialect].elementsOf('e')
}
