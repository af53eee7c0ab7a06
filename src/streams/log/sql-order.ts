import { limits } from '../../ledger/core/limits.ts'
import { checkSqlStore } from '../../ledger/sql-store.ts'
import { createLeaseSql } from '../../ledger/store/leases.ts'
import type { SqlStore } from '../../ledger/store/port.ts'
import type { RowOf, SqlTx } from '../../ledger/store/sql.ts'
import type { OrderAppended, OrderBatch, OrderClaim, OrderLog, OrderRow } from '../ports.ts'
import { furthest } from '../protocol/position.ts'
import type { Position } from '../protocol/protocol.ts'
import { identityText } from '../protocol/protocol.ts'
import { openStreamTables } from './sql-open.ts'
import { big, elements, joining, text } from './sql-rows.ts'
import { ORDERS } from './sql-tables.ts'

type OrderHead = RowOf<'position', 'fence' | 'head'>

type OrderRowRead = RowOf<'client', 'g' | 'epoch' | 'cseq'>

/** The row of an element's identity, found by its index. */
const SAME = `o.client = ${text('client')} and o.epoch = ${big('epoch')} and o.cseq = ${big('cseq')}`

function rowOf({ g, client, epoch, cseq }: OrderRowRead): OrderRow {
  return { g: Number(g), client, epoch: Number(epoch), cseq: Number(cseq) }
}

/**
 * The final order of rooms, in the store that all regions share: SQLite for one process, PostgreSQL for many.
 *
 * @example
 * ```ts
 * import { sqliteStore } from 'onceonly/sqlite'
 * import { createSqlOrderLog, createSqlRoomLog, createStreamRegion } from 'onceonly/stream/server'
 *
 * const store = sqliteStore('rooms.db')
 * const log = createSqlRoomLog({ store, region: 'eu' })
 * const region = createStreamRegion({ region: 'eu', log, order: createSqlOrderLog({ store }) })
 * ```
 */
export function createSqlOrderLog({ store }: { readonly store: SqlStore }): OrderLog {
  checkSqlStore('createSqlOrderLog', store)
  const { sql } = store
  const { dialect, now } = sql
  const { prepare, inTransaction } = openStreamTables(store)
  const claimText = createLeaseSql(sql, ORDERS).claimText('fence, head, position')

  /** Locks the room's row until the transaction ends, so that a checked fence stays valid. */
  async function lock(tx: SqlTx, room: string): Promise<OrderHead | undefined> {
    const hold = dialect.lock('for update')
    const statement = `select fence, head, position from onceonly_stream_orders where room = ? ${hold}`
    const [row] = await tx.query<OrderHead>(statement, [room])
    return row
  }

  async function claim(room: string, holder: string, leaseMs: number): Promise<OrderClaim> {
    await prepare()
    const [row] = await sql.query<OrderHead>(claimText, [room, holder, leaseMs])
    if (row === undefined) return { kind: 'taken' }
    const position = JSON.parse(row.position) as Position
    return { kind: 'held', fence: Number(row.fence), position, head: Number(row.head) }
  }

  async function append(tx: SqlTx, room: string, batch: OrderBatch): Promise<OrderAppended> {
    const row = await lock(tx, room)
    if (row === undefined || Number(row.fence) !== batch.fence) return { kind: 'lost' }
    const once = new Map(batch.identities.map((each) => [identityText(each), each]))
    const list = JSON.stringify([...once.values()])
    // Numbered by their place among those that have none yet, so that there is no gap.
    const added = await tx.query(
      `insert into onceonly_stream_order_rows (room, g, client, epoch, cseq, added_at)
        select ?, cast(? as bigint) + row_number() over (order by e.key), ${text('client')}, ${big('epoch')},
          ${big('cseq')}, (select ${now}) from ${elements(dialect)}
        where not exists (select 1 from onceonly_stream_order_rows as o where o.room = ? and ${SAME})
        returning g`,
      [room, Number(row.head), list, room],
    )
    const head = Number(row.head) + added.length
    const position = furthest(JSON.parse(row.position) as Position, batch.position)
    const statement = 'update onceonly_stream_orders set head = ?, position = ? where room = ?'
    await tx.query(statement, [head, JSON.stringify(position), room])
    return { kind: 'appended', head }
  }

  return {
    claim,
    append: (room, batch) => inTransaction((tx) => append(tx, room, batch)),
    async trim(room, { olderThanMs, mostEntries }) {
      await prepare()
      // Rows are added in the order of the time, so that the last of them that is past its end ends the row.
      const gone = await sql.query(
        `delete from onceonly_stream_order_rows where room = ? and g <= (select max(g) from (
            select g, added_at from onceonly_stream_order_rows where room = ? order by g limit ${limits.sweepRows}) as oldest
          where added_at < ${now} - ? or g <= (select head from onceonly_stream_orders where room = ?) - ?)
          returning g`,
        [room, room, olderThanMs, room, mostEntries],
      )
      return { removed: gone.length, more: gone.length >= limits.sweepRows }
    },
    async read(room, after, most) {
      await prepare()
      const rows = await sql.query<OrderRowRead>(
        `select g, client, epoch, cseq from onceonly_stream_order_rows
          where room = ? and g > ? order by g limit ?`,
        [room, after, most],
      )
      return rows.map(rowOf)
    },
    async places(room, identities) {
      await prepare()
      const list = JSON.stringify(identities.map(({ client, epoch, cseq }) => ({ client, epoch, cseq })))
      const rows = await sql.query<OrderRowRead>(
        `select o.g, o.client, o.epoch, o.cseq from ${elements(dialect)}
          ${joining(dialect)} onceonly_stream_order_rows as o on o.room = ? and ${SAME}`,
        [list, room],
      )
      return rows.map(rowOf)
    },
  }
}
