import { FOREVER } from '../../ledger/core/limits.ts'
import type { SqlSeam, SqlTx } from '../../ledger/store/sql.ts'
import { sagaLimits } from './limits.ts'

/** Until the next transition. */
const WAITING = FOREVER
/** Among the dead letters of the inbox: delivered again only by a person. */
const PARKED = FOREVER - 1

/** A timeout or a deferred event that is to be delivered. */
export interface Due {
  readonly token: string
  readonly id: string
  readonly event: string
  /** JSON text. */
  readonly body: string
}

export interface Taken extends Due {
  /** How often it was taken, this time included. */
  readonly deliveries: number
}

export interface PendingView {
  /** Null for a deferred event. */
  readonly name: string | null
  readonly event: string
  /** When a timeout was scheduled for, or when an event was deferred. */
  readonly dueAt: number
  readonly parked: boolean
}

/** What an instance will be handed without anybody sending it: its timeouts, and the events it deferred. */
export interface Pending {
  /** Whether the delivery still means something: its row is there, under the token that it was taken with. */
  holds(tx: SqlTx, due: Pick<Due, 'token' | 'id' | 'event'>): Promise<boolean>
  /** Outside of any transaction with null. */
  drop(tx: SqlTx | null, token: string): Promise<void>
  /** Replaces the timeout of that name. */
  schedule(tx: SqlTx, due: Due & { readonly name: string }, dueAt: number): Promise<void>
  unschedule(tx: SqlTx, id: string, name: string): Promise<void>
  unscheduleAll(tx: SqlTx, id: string): Promise<void>
  defer(tx: SqlTx, due: Due, now: number): Promise<void>
  /** The inbox has seen the old token, so that the next delivery needs a new one. */
  deferAgain(tx: SqlTx, token: string, newToken: string): Promise<void>
  /** Everything that the instance deferred becomes due. */
  release(tx: SqlTx, id: string, now: number): Promise<void>
  deferred(tx: SqlTx, id: string): Promise<number>
  /** For this process to deliver, until its lease is over. In the order in which they were kept. */
  take(): Promise<readonly Taken[]>
  postpone(token: string, delayMs: number): Promise<void>
  park(token: string): Promise<void>
  /** What was parked is due again, as if it had never been delivered. False when it means nothing any more. */
  free(tx: SqlTx, token: string, newToken: string): Promise<boolean>
  read(id: string): Promise<readonly PendingView[]>
}

export function createPending(sql: SqlSeam, saga: string): Pending {
  const mine = 'saga = ? AND id = ?'
  const due = dueIn(sql)
  return {
    async holds(tx, { token, id, event }) {
      const [row] = await tx.query<Due>('SELECT saga, id, event FROM onceonly_saga_pending WHERE token = ?', [token])
      return row !== undefined && row.id === id && row.event === event
    },
    async drop(tx, token) {
      await (tx ?? sql).query('DELETE FROM onceonly_saga_pending WHERE token = ?', [token])
    },
    async schedule(tx, { token, id, name, event, body }, dueAt) {
      await tx.query(
        `INSERT INTO onceonly_saga_pending (token, saga, id, name, event, body, due_at, next_at, deliveries)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)
         ON CONFLICT (saga, id, name) DO UPDATE SET token = excluded.token, event = excluded.event,
           body = excluded.body, due_at = excluded.due_at, next_at = excluded.next_at, deliveries = 0`,
        [token, saga, id, name, event, body, dueAt, dueAt],
      )
    },
    async unschedule(tx, id, name) {
      await tx.query(`DELETE FROM onceonly_saga_pending WHERE ${mine} AND name = ?`, [saga, id, name])
    },
    async unscheduleAll(tx, id) {
      await tx.query(`DELETE FROM onceonly_saga_pending WHERE ${mine} AND name IS NOT NULL`, [saga, id])
    },
    async defer(tx, { token, id, event, body }, now) {
      await tx.query(
        `INSERT INTO onceonly_saga_pending (token, saga, id, name, event, body, due_at, next_at, deliveries)
         VALUES (?, ?, ?, NULL, ?, ?, ?, ?, 0)`,
        [token, saga, id, event, body, now, WAITING],
      )
    },
    async deferAgain(tx, token, newToken) {
      // A timeout that is deferred has fired: it is no timeout any more, and its name is free.
      await tx.query(
        `UPDATE onceonly_saga_pending SET token = ?, name = NULL, next_at = ?, deliveries = 0 WHERE token = ?`,
        [newToken, WAITING, token],
      )
    },
    async release(tx, id, now) {
      await tx.query(`UPDATE onceonly_saga_pending SET next_at = ? WHERE ${mine} AND next_at = ?`, [
        now,
        saga,
        id,
        WAITING,
      ])
    },
    async deferred(tx, id) {
      const [row] = await tx.query<{ count: number | string }>(
        `SELECT count(*) AS count FROM onceonly_saga_pending WHERE ${mine} AND name IS NULL`,
        [saga, id],
      )
      return Number(row?.count ?? 0)
    },
    async take() {
      // Only a look while nothing is due: that is what it does almost always.
      if ((await sql.query(due.look, [saga])).length === 0) return []
      const { dueLeaseMs, dueRows } = sagaLimits
      const taken = await sql.query<Taken & { seq: number | string }>(due.take, [dueLeaseMs, saga, dueRows])
      return taken.toSorted((a, b) => Number(a.seq) - Number(b.seq))
    },
    async postpone(token, delayMs) {
      await sql.query(due.postpone, [delayMs, token])
    },
    async park(token) {
      await sql.query('UPDATE onceonly_saga_pending SET next_at = ? WHERE token = ?', [PARKED, token])
    },
    async free(tx, token, newToken) {
      // Under another token, because whoever parked it may still be about to write that down.
      return (await tx.query(due.free, [newToken, token])).length > 0
    },
    async read(id) {
      const rows = await sql.query<{ name: string | null; event: string; due_at: unknown; next_at: unknown }>(
        `SELECT name, event, due_at, next_at FROM onceonly_saga_pending WHERE ${mine} ORDER BY seq`,
        [saga, id],
      )
      return rows.map(({ name, event, due_at, next_at }) => {
        return { name, event, dueAt: Number(due_at), parked: Number(next_at) === PARKED }
      })
    },
  }
}

/** The statements that need the store's time. As a subquery it is asked once, and can be looked up in an index. */
function dueIn({ dialect, now }: SqlSeam) {
  // Where many write at once, rows that somebody else is just taking or changing are passed over.
  const lock = dialect === 'postgres' ? ' FOR UPDATE SKIP LOCKED' : ''
  const isDue = `saga = ? AND next_at <= (SELECT ${now})`
  return {
    look: `SELECT 1 AS due FROM onceonly_saga_pending WHERE ${isDue} LIMIT 1`,
    take: `UPDATE onceonly_saga_pending SET next_at = (SELECT ${now}) + ?, deliveries = deliveries + 1 WHERE seq IN (
        SELECT seq FROM onceonly_saga_pending WHERE ${isDue} ORDER BY next_at, seq LIMIT ?${lock}
      ) RETURNING seq, token, id, event, body, deliveries`,
    postpone: `UPDATE onceonly_saga_pending SET next_at = (SELECT ${now}) + ? WHERE token = ?`,
    free: `UPDATE onceonly_saga_pending SET token = ?, next_at = ${now}, deliveries = 0 WHERE token = ? RETURNING token`,
  }
}
