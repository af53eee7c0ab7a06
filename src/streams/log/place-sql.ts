import { OnceError } from '../../ledger/core/errors.ts'
import { checkSqlStore } from '../../ledger/sql-store.ts'
import type { SqlStore } from '../../ledger/store/port.ts'
import type { SqlTx } from '../../ledger/store/sql.ts'
import { StreamError } from '../client/errors.ts'
import { createShelfPlace, type KeptPlace } from '../client/place-on-shelf.ts'
import type { Shelf, ShelfChanges } from '../client/place-shelf.ts'
import { createClientRuntime } from '../client/runtime.ts'
import { openStreamTables } from './sql-open.ts'

/** A place in the store of whatever the receiver writes. */
export interface SqlPlace extends KeptPlace {
  /** While a receiver runs with `effectively-once`: what it writes here commits with its position, or not at all. */
  readonly tx: SqlTx
}

export interface SqlPlaceOptions {
  readonly store: SqlStore
  /**
   * One for each client. Where two open one name, the last has it: writes of the other are refused with `place_taken`.
   */
  readonly name: string
}

/** The name under which the last opener stands. */
const OPENER = 'opener'

/**
 * For clients that live beside a store: a crash in the middle of a receiver leaves neither its writes nor its position.
 */
export function createSqlPlace({ store, name: shelfName }: SqlPlaceOptions): SqlPlace {
  checkSqlStore('createSqlPlace', store)
  const { inTransaction } = openStreamTables(store)
  const opener = createClientRuntime().newId()
  // Held until the transaction ends, so that the next process that opens the storage finds all earlier writes.
  const holdRow = store.sql.dialect.lock('for update')
  let current: SqlTx | null = null

  async function put(tx: SqlTx, changes: ShelfChanges): Promise<void> {
    const text = `select value from onceonly_stream_shelves where shelf = ? and name = ? ${holdRow}`
    const [row] = await tx.query<{ value: string }>(text, [shelfName, OPENER])
    if (row?.value !== JSON.stringify(opener)) throw placeTaken(shelfName)
    await change(tx, changes)
  }

  async function change(tx: SqlTx, { put: values = {}, remove = [] }: ShelfChanges): Promise<void> {
    for (const name of remove) {
      await tx.query('delete from onceonly_stream_shelves where shelf = ? and name = ?', [shelfName, name])
    }
    for (const [name, value] of Object.entries(values)) {
      await tx.query(
        `insert into onceonly_stream_shelves (shelf, name, value) values (?, ?, ?)
          on conflict (shelf, name) do update set value = excluded.value`,
        [shelfName, name, store.sql.secret(JSON.stringify(value))],
      )
    }
  }

  const shelf: Shelf = {
    load: () =>
      inTransaction(async (tx) => {
        await change(tx, { put: { [OPENER]: opener } })
        const text = 'select name, value from onceonly_stream_shelves where shelf = ?'
        const rows = await tx.query<{ name: string; value: string }>(text, [shelfName])
        return new Map(rows.map(({ name, value }) => [name, JSON.parse(value) as unknown]))
      }),
    write: (changes) => inTransaction((tx) => put(tx, changes)),
    atomically: (work) =>
      inTransaction(async (tx) => {
        current = tx
        try {
          await work((changes) => put(tx, changes))
        } finally {
          current = null
        }
      }),
    stop: async () => {},
  }

  return {
    ...createShelfPlace(shelf),
    get tx() {
      if (current === null) throw new OnceError('bad_option', 'There is a transaction only while a receiver runs.')
      return current
    },
  }
}

function placeTaken(name: string): OnceError {
  return new StreamError('place_taken', `The place ${name} was opened by another client.`, { details: { place: name } })
}
