import { limits } from '../../../ledger/core/limits.ts'
import { hasEnded } from '../../../ledger/store/ended.ts'
import type { LeaseSql } from '../../../ledger/store/leases.ts'
import { createLeaseSql } from '../../../ledger/store/leases.ts'
import type { SqlStore } from '../../../ledger/store/port.ts'
import { numberOrNull, type RowOf } from '../../../ledger/store/sql.ts'
import type { IncomingMessage } from '../../inbox/port.ts'
import type { OutgoingMessage } from '../../outbox/port.ts'
import { DELIVERIES, LOCAL_ROOM } from './tables.ts'

/** A message that one receiver holds, under the fence of this delivery. */
export interface Delivery {
  readonly seq: number
  readonly fence: number
  readonly message: IncomingMessage
}

/** The statements of the bus, one function each. All times are the store's. */
export interface Queues {
  readonly leases: LeaseSql<'seq'>
  bind(consumer: string, topics: readonly string[]): Promise<void>
  /** Those of the topics that some consumer group is bound to. */
  bound(topics: readonly string[]): Promise<ReadonlySet<string>>
  /** A row for every group of each message's topic, in order; a copy of one that still waits adds nothing. */
  put(messages: readonly OutgoingMessage[], call: { readonly timeoutMs: number }): Promise<void>
  /**
   * After how many milliseconds there may be something to take; null when nothing waits. A read, which waits for no writer
   * and keeps none waiting.
   */
  dueIn(consumer: string, topics: readonly string[]): Promise<number | null>
  take(consumer: string, topics: readonly string[], rows: number): Promise<readonly Delivery[]>
  remove(deliveries: readonly Delivery[]): Promise<void>
  putOff(deliveries: readonly Delivery[], delayMs: number): Promise<void>
  /** Taken, but never handed to a receiver: as if nothing had happened. */
  giveBack(deliveries: readonly Delivery[]): Promise<void>
  /** Removes what was not acknowledged in time, a bounded number of the oldest rows. */
  expire(keepMs: number): Promise<number>
}

type Row = RowOf<'id' | 'topic' | 'headers' | 'body', 'seq' | 'fence' | 'number' | 'deliveries', 'key'>

export function createQueues({ sql, transactions }: SqlStore, holder: string, leaseMs: number): Queues {
  const { dialect } = sql
  const leases = createLeaseSql(sql, DELIVERIES)
  // As a subquery it is one value for the whole statement, which an index can be asked for.
  const now = `(SELECT ${sql.now})`
  const oneTopic = `topic IN (SELECT ${dialect.elementText('value')} FROM ${dialect.elementsOf('wanted')})`

  const which = `consumer = ? AND ${oneTopic}`
  const due = `SELECT free_at - ${now} AS due FROM onceonly_local_deliveries WHERE ${which} ORDER BY free_at LIMIT 1`
  const take = leases.takeText({
    which,
    order: 'free_at, seq',
    set: 'deliveries = deliveries + 1',
    returning: 'seq, fence, id, topic, key, number, headers, body, deliveries',
  })
  const put = `INSERT INTO onceonly_local_deliveries
      (consumer, id, topic, key, number, headers, body, published_at, free_at)
    SELECT bound.consumer, m.value->>'id', bound.topic, m.value->>'key', CAST(m.value->>'sequence' AS bigint),
      m.value->>'headers', m.value->>'body', ${now}, ${now}
    FROM ${dialect.elementsOf('m')} JOIN onceonly_local_groups AS bound ON bound.topic = m.value->>'topic'
    WHERE TRUE ORDER BY m.key ON CONFLICT (consumer, id) DO NOTHING`

  return {
    leases,
    async bind(consumer, topics) {
      for (const topic of topics) {
        const text = 'INSERT INTO onceonly_local_groups (consumer, topic) VALUES (?, ?) ON CONFLICT DO NOTHING'
        await sql.query(text, [consumer, topic])
      }
    },
    async bound(topics) {
      const text = `SELECT DISTINCT topic FROM onceonly_local_groups WHERE ${oneTopic}`
      const rows = await sql.query<{ topic: string }>(text, [JSON.stringify(topics)])
      return new Set(rows.map(({ topic }) => topic))
    },
    async put(messages, { timeoutMs }) {
      if (messages.length === 0) return
      // Headers as text within the text, because they are kept as text.
      const rows = messages.map((message) => ({
        ...message,
        key: sql.secret(message.key),
        headers: sql.secret(JSON.stringify(message.headers)),
        body: sql.secret(message.body),
      }))
      const call = { timeoutMs, lockMs: Math.min(timeoutMs, limits.transactionLockMs), refuseTwinOf: null }
      await transactions.run(async ({ tx }) => {
        await tx.query(put, [JSON.stringify(rows)])
        await tx.query(`SELECT ${sql.wake(LOCAL_ROOM)}`)
      }, call)
    },
    async dueIn(consumer, topics) {
      const [row] = await sql.query<{ due: unknown }>(due, [consumer, JSON.stringify(topics)])
      return numberOrNull(row?.due)
    },
    async take(consumer, topics, rows) {
      const values = [holder, leaseMs, consumer, JSON.stringify(topics), Math.min(rows, limits.localClaimRows)]
      const taken = await sql.query<Row>(take, values)
      return taken.map(deliveryOf).toSorted((a, b) => a.seq - b.seq)
    },
    async remove(deliveries) {
      await sql.query(`DELETE FROM onceonly_local_deliveries WHERE ${leases.held}`, [leases.listed(deliveries)])
    },
    putOff: (deliveries, delayMs) => leases.release(deliveries, { delayMs }),
    giveBack: (deliveries) => leases.release(deliveries, { set: 'deliveries = deliveries - 1' }),
    async expire(keepMs) {
      const where = 'seq = (SELECT min(seq) FROM onceonly_local_deliveries)'
      const first = { table: 'onceonly_local_deliveries', column: 'published_at', where }
      if (!(await hasEnded(sql, first, keepMs))) return 0
      const oldest = 'SELECT seq FROM onceonly_local_deliveries ORDER BY seq LIMIT ?'
      const text = `DELETE FROM onceonly_local_deliveries
        WHERE seq IN (${oldest}) AND published_at <= ${now} - ? RETURNING seq`
      return (await sql.query(text, [limits.sweepRows, keepMs])).length
    },
  }
}

function deliveryOf(row: Row): Delivery {
  const { id, topic, key, body } = row
  const headers = JSON.parse(row.headers) as Record<string, string>
  const sequence = numberOrNull(row.number)
  return {
    seq: Number(row.seq),
    fence: Number(row.fence),
    message: { id, topic, key, sequence, body, headers, deliveries: Number(row.deliveries) },
  }
}
