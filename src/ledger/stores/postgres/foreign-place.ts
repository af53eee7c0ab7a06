import { OnceError } from '../../core/errors.ts'
import { limits } from '../../core/limits.ts'
import type { Core } from './core.ts'
import type { ForeignTx } from './foreign-tx.ts'
import { quoteText } from './names.ts'
import type { TextRow } from './statement.ts'

/** Finds out whether an ORM is connected to the store's own tables. */
export interface SamePlace {
  /** Reads where the store is, once. Before a transaction is open: a pool of one connection has none left then. */
  learn(): Promise<void>
  /** Throws when the transaction is elsewhere. Knows nothing before the store's place was learned. */
  check(tx: ForeignTx): Promise<void>
}

/**
 * An ORM on another database, or one whose `search_path` leads to other tables, would keep records that the store never
 * sees. Compared once: the server since its start, the database, and the table itself.
 */
export function createSamePlace({ names, read }: Pick<Core, 'names' | 'read'>, orm: string): SamePlace {
  const table = `to_regclass(${quoteText(names.records)})::oid::text`
  const text = `SELECT current_database() AS database, ${table} AS tables,
    extract(epoch FROM pg_postmaster_start_time())::text AS started`
  let own: TextRow | null = null
  let checked = false

  function elsewhere(other: TextRow, place: TextRow): OnceError {
    const found = other['tables'] === null ? 'which has no tables of the ledger' : 'and finds other tables there'
    const message = `${orm} is connected to the database \`${other['database']}\`, ${found}; the store is on \`${place['database']}\`. Connect both to the same database and schema.`
    return new OnceError('bad_option', message, { details: { option: 'transactions' } })
  }

  return {
    learn: async () => {
      if (own === null) [own = null] = await read({ timeoutMs: limits.storeCallMs }, ({ rows }) => rows(text))
    },
    check: async (tx) => {
      if (checked || own === null) return
      const [other = {}] = await tx.rows(text)
      const place = own
      checked = ['database', 'tables', 'started'].every((part) => place[part] === other[part])
      if (checked) return
      // The server may have been started again meanwhile: the next call reads both again.
      own = null
      throw elsewhere(other, place)
    },
  }
}
