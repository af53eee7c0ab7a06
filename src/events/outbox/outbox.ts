import { OnceError } from '../../ledger/core/errors.ts'
import { limits } from '../../ledger/core/limits.ts'
import { checkOptions } from '../../ledger/core/option-names.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { sqlStoreOf } from '../../ledger/sql-store.ts'
import { createDeadline, inTime } from '../../ledger/store/deadline.ts'
import { sqlBehind } from '../../ledger/store/foreign.ts'
import type { OutboxMessage, OutboxPort } from '../../ledger/store/outbox.ts'
import type { SqlTx } from '../../ledger/store/sql.ts'
import { createAdd } from './add.ts'
import { newMessageId } from './id.ts'
import { checkId, draftOf } from './message.ts'
import type { OutboxDeadLetters, OutboxStatus } from './operate.ts'
import { createDeadLetters, statusOf } from './operate.ts'
import { OUTBOX_ROOM, OUTBOX_VERSION, outboxTablesOf } from './tables.ts'

export interface OutboxOptions<Tx = SqlTx> {
  /**
   * Its effects can add messages then. On SQLite, PostgreSQL or MariaDB; with `transactions`, `add` takes those that your ORM
   * has open, too.
   */
  readonly ledger: Ledger<Tx>
}

/**
 * Messages of a transaction: rows that commit with it, or not at all. A relay publishes them afterwards. Effects of the ledger have
 * it as `outbox`; in a transaction of your own, call `add`.
 */
export interface Outbox<Tx = SqlTx> extends OutboxPort<SqlTx | Tx> {
  /**
   * Adds a message. With an id, a second message under it is no message: a command that is tried again adds nothing.
   * Messages of one key are published in the order in which their transactions commit, so that two transactions which add
   * to one key wait for each other.
   *
   * @param tx the `tx` of an effect, or the handle of a transaction that your ORM has open
   */
  add(tx: SqlTx | Tx, message: OutboxMessage & { readonly id?: string }): Promise<void>
  /** Makes the tables. Without it the first use does, and a transaction that comes too early gets a retryable error. */
  prepare(): Promise<void>
  readonly deadLetters: OutboxDeadLetters
  /** What waits, since when, and who works on it. */
  status(): Promise<OutboxStatus>
}

/**
 * Makes an outbox: messages that effects add commit with their transaction, and a relay publishes them.
 *
 * @example
 * ```ts
 * import { createLedger } from 'onceonly'
 * import { createOutbox } from 'onceonly/outbox'
 * import { sqliteStore } from 'onceonly/sqlite'
 *
 * const once = createLedger({ store: sqliteStore('orders.db') })
 * await createOutbox({ ledger: once }).prepare()
 * const place = once.operation<{ id: string }>({ name: 'order.place', effect: 'transaction' })
 * await place.run({ tenant: 'acme', caller: 'shop', key: 'o1' }, { id: 'o1' }, async ({ tx, outbox }) => {
 *   await tx.query('insert into orders (id) values (?)', ['o1'])
 *   await outbox.add({ topic: 'order.placed', key: 'o1', body: { id: 'o1' } })
 * })
 * ```
 */
export function createOutbox<Tx>(options: OutboxOptions<Tx>): Outbox<Tx> {
  checkOptions('createOutbox', options, { ledger: true } satisfies Record<keyof OutboxOptions, true>)
  const { ledger } = options
  const store = sqlStoreOf('createOutbox', ledger)
  const { orm } = ledger
  const tables = outboxTablesOf(store)
  const { sql } = store
  const add = createAdd(sql)
  // Begun at once, so that it is done before the first transaction; the first use of the tables throws its error.
  tables.prepare().catch(() => undefined)

  const outbox: Outbox<Tx> = {
    async add(tx, message) {
      const draft = draftOf(message)
      const given = message.id !== undefined
      const id = message.id === undefined ? newMessageId() : checkId(message.id)
      const open = sqlIn(tx)
      if (tables.state !== 'ready' && !(orm !== null && (await areThere(open)))) await firstUse(sqlBehind(tx) !== open)
      await add(open, { id, given, draft })
    },
    prepare: tables.prepare,
    deadLetters: createDeadLetters(store, tables),
    status: () => tables.prepare().then(() => statusOf(sql)),
  }
  ledger.setOutbox(outbox)
  return outbox

  function sqlIn(tx: SqlTx | Tx): SqlTx {
    const sql = sqlBehind(tx)
    if (typeof sql?.inSavepoint === 'function') return sql
    if (orm !== null) return orm.sqlOf(tx as Tx)
    const text =
      '`outbox.add` needs the `tx` of an effect. For a transaction of your ORM, give createLedger its `transactions`.'
    throw new OnceError('bad_option', text)
  }

  /** Looked up in the ORM's transaction, which may hold the only connection: then no other could look or prepare. */
  async function areThere(open: SqlTx): Promise<boolean> {
    const tables = await open.query<{ name: string }>(sql.dialect.tableNames)
    if (!tables.some(({ name }) => name === 'onceonly_migrations')) return false
    const text = 'SELECT max(version) AS version FROM onceonly_migrations WHERE room = ?'
    const [room] = await open.query<{ version: unknown }>(text, [OUTBOX_ROOM])
    return Number(room?.version) >= OUTBOX_VERSION
  }

  /**
   * Where the transaction holds the only writer, the tables can be made only when it is over. Elsewhere it may wait for a
   * migration in progress but does not start one: many waiting transactions could hold every connection.
   */
  async function firstUse(mayHoldLast: boolean): Promise<void> {
    const underWay = sql.dialect.writers > 1 && tables.state === 'preparing'
    const preparing = tables.prepare()
    const next = 'Await `outbox.prepare()` before the first transaction, or run `onceonly migrate`.'
    const early = new OnceError('store_busy', 'The tables of the outbox are not made yet.', { next })
    if (underWay && !mayHoldLast) return await preparing
    preparing.catch(() => undefined)
    if (!underWay) throw early
    // The transaction of an ORM may hold the connection that the migration waits for.
    const patience = createDeadline(limits.besideTransactionMs)
    await inTime(preparing, patience, () => early).finally(() => patience.end())
  }
}
