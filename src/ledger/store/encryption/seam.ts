import { OnceError } from '../../core/errors.ts'
import { limits } from '../../core/limits.ts'
import type { Store } from '../port.ts'
import type { QueryHow, Script, SqlRow, SqlSeam, SqlTx, SqlValue, Statement } from '../sql.ts'
import { EncryptionError } from './errors.ts'
import { addColumns } from './marker.ts'
import type { Opened, Opener } from './opened.ts'
import { ROW } from './plain.ts'
import { rekeyLookups } from './rekey-tables.ts'

const CALL = { timeoutMs: limits.storeCallMs }

function openText({ box }: Opened, text: string): string {
  if (text[box.mark.length] === '~') return box.openToken(text, ROW) ?? unreadable(text, null)
  return box.open(text, ROW) ?? unreadable(text, box.keyOf(text))
}

function unreadable(text: string, key: string | null): never {
  const by = key === null ? '' : ` with the key \`${key}\``
  throw new EncryptionError(`A stored text of ${text.length} characters cannot be decrypted${by}.`)
}

/** Every text that this store has encrypted is opened where it is read: no statement has to say so. */
function openRows<Row>(on: Opened, rows: readonly Row[]): readonly Row[] {
  const { mark } = on.box
  for (const row of rows) {
    const values = row as Record<string, unknown>
    for (const name in values) {
      const value = values[name]
      if (typeof value === 'string' && value.startsWith(mark)) values[name] = openText(on, value)
    }
  }
  return rows
}

function isSqlTx(tx: unknown): tx is SqlTx {
  return typeof tx === 'object' && tx !== null && 'query' in tx && 'inSavepoint' in tx
}

/** Transactions of other kinds, of the memory store and of ORMs, pass as they are. */
export function openedTx(on: Opened, tx: unknown): unknown {
  if (!isSqlTx(tx)) return tx
  return {
    ...tx,
    query: async <Row = SqlRow>(text: string, values?: readonly SqlValue[]) =>
      openRows(on, await tx.query<Row>(text, values)),
  } satisfies SqlTx
}

function* openedScript<T>(on: Opened, script: Script<T>): Script<T> {
  let rows: readonly SqlRow[] = []
  for (;;) {
    const { done, value } = script.next(rows)
    if (done === true) return value
    rows = openRows(on, yield value as Statement)
  }
}

export function openedSeam(store: Store, sql: SqlSeam, opener: Opener): SqlSeam {
  function opened(): Opened {
    const on = opener.current()
    if (on === null) throw new OnceError('bad_option', 'The tables are not prepared: call `migrate` first.')
    return on
  }

  return {
    ...sql,
    secret: <T extends string | null>(text: T) => (text === null ? text : (opened().box.seal(text, ROW) as T)),
    lookup: <T extends string | null>(text: T) => (text === null ? text : (opened().box.token(text, ROW) as T)),
    migrate: async (room, migrations) => {
      const on = await opener.open(CALL)
      await sql.migrate(room, migrations)
      await addColumns(store, room, {}, CALL)
      for (const { encrypted } of migrations) {
        if (encrypted === undefined) continue
        await addColumns(store, room, encrypted, CALL)
        // Rows are looked for by what is encrypted from now on: those from before must be found, too.
        if (on.plain()) await rekeyLookups(sql, on, encrypted)
      }
    },
    query: async <Row = SqlRow>(text: string, values?: readonly SqlValue[], how?: QueryHow) => {
      const on = await opener.open(CALL)
      return openRows(on, await sql.query<Row>(text, values, how))
    },
    script: async (begin) => {
      const on = await opener.open(CALL)
      return sql.script(() => openedScript(on, begin()))
    },
  }
}
