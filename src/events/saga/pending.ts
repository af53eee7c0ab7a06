import { FOREVER } from '../../ledger/core/limits.ts'
import type { LeaseSql } from '../../ledger/store/leases.ts'
import { createLeaseSql } from '../../ledger/store/leases.ts'
import { numberOrNull, type SqlSeam, type SqlTx } from '../../ledger/store/sql.ts'
import { sagaLimits } from './limits.ts'
import { PENDING } from './tables.ts'

/** Until the next transition. */
const WAITING = FOREVER
/** Among the dead letters of the inbox: delivered again only by an operator. */
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
  readonly fence: number
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

/** What an instance is handed without a message from outside: its timeouts, and the events it deferred. */
export interface Pending {
  readonly leases: LeaseSql<'token'>
  /** Whether the delivery still means something: its row is there, under the token that it was taken with. */
  holds(tx: SqlTx, due: Pick<Due, 'token' | 'id' | 'event'>): Promise<boolean>
  drop(tx: SqlTx, token: string): Promise<void>
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
  /** After how many milliseconds something is due; null when nothing waits. */
  dueIn(): Promise<number | null>
  /** For this process to deliver, until its lease is over. In the order in which they were kept. */
  take(): Promise<readonly Taken[]>
  /** These three change nothing once another process has taken it. */
  postpone(taken: Taken, delayMs: number): Promise<void>
  park(taken: Taken): Promise<void>
  remove(taken: Taken): Promise<void>
  read(id: string): Promise<readonly PendingView[]>
}

/** `holder` names the process that takes and delivers. */
export function createPending(sql: SqlSeam, saga: string, holder: string): Pending {
  const mine = 'saga = ? AND id = ?'
  const leases = createLeaseSql(sql, PENDING)
  const due = `SELECT free_at - (SELECT ${sql.now}) AS due FROM onceonly_saga_pending
    WHERE saga = ? ORDER BY free_at LIMIT 1`
  const take = leases.takeText({
    which: 'saga = ?',
    order: 'free_at, seq',
    set: 'deliveries = deliveries + 1',
    returning: 'seq, token, fence, id, event, body, deliveries',
  })
  return {
    leases,
    async holds(tx, { token, id, event }) {
      const [row] = await tx.query<Due>('SELECT saga, id, event FROM onceonly_saga_pending WHERE token = ?', [token])
      return row !== undefined && row.id === id && row.event === event
    },
    async drop(tx, token) {
      await tx.query('DELETE FROM onceonly_saga_pending WHERE token = ?', [token])
    },
    async schedule(tx, { token, id, name, event, body }, dueAt) {
      await tx.query(
        `INSERT INTO onceonly_saga_pending (token, saga, id, name, event, body, due_at, free_at, deliveries)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)
         ON CONFLICT (saga, id, name) DO UPDATE SET token = excluded.token, event = excluded.event,
           body = excluded.body, due_at = excluded.due_at, free_at = excluded.free_at, deliveries = 0`,
        [token, saga, id, name, event, sql.secret(body), dueAt, dueAt],
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
        `INSERT INTO onceonly_saga_pending (token, saga, id, name, event, body, due_at, free_at, deliveries)
         VALUES (?, ?, ?, NULL, ?, ?, ?, ?, 0)`,
        [token, saga, id, event, sql.secret(body), now, WAITING],
      )
    },
    async deferAgain(tx, token, newToken) {
      // A timeout that is deferred has fired: it is no timeout any more, and its name is free.
      await tx.query(
        `UPDATE onceonly_saga_pending SET token = ?, name = NULL, free_at = ?, deliveries = 0 WHERE token = ?`,
        [newToken, WAITING, token],
      )
    },
    async release(tx, id, now) {
      await tx.query(`UPDATE onceonly_saga_pending SET free_at = ? WHERE ${mine} AND free_at = ?`, [
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
    async dueIn() {
      const [row] = await sql.query<{ due: unknown }>(due, [saga])
      return numberOrNull(row?.due)
    },
    async take() {
      const { dueLeaseMs, dueRows } = sagaLimits
      const rows = await sql.query<Taken & { seq: unknown; fence: unknown }>(take, [holder, dueLeaseMs, saga, dueRows])
      return rows.toSorted((a, b) => Number(a.seq) - Number(b.seq)).map((row) => ({ ...row, fence: Number(row.fence) }))
    },
    postpone: (taken, delayMs) => leases.release([taken], { delayMs }),
    async park(taken) {
      const text = `UPDATE onceonly_saga_pending SET holder = NULL, fence = fence + 1, free_at = ? WHERE ${leases.held}`
      await sql.query(text, [PARKED, leases.listed([taken])])
    },
    async remove(taken) {
      await sql.query(`DELETE FROM onceonly_saga_pending WHERE ${leases.held}`, [leases.listed([taken])])
    },
    async read(id) {
      const rows = await sql.query<{ name: string | null; event: string; due_at: unknown; free_at: unknown }>(
        `SELECT name, event, due_at, free_at FROM onceonly_saga_pending WHERE ${mine} ORDER BY seq`,
        [saga, id],
      )
      return rows.map(({ name, event, due_at, free_at }) => {
        return { name, event, dueAt: Number(due_at), parked: Number(free_at) === PARKED }
      })
    },
  }
}

/** What was parked is due again, as if it had never been delivered. False when it means nothing any more. */
export async function freePending(tx: SqlTx, now: string, token: string, newToken: string): Promise<boolean> {
  // Under another token, because the process that parked it may still be about to write that down.
  const text = `UPDATE onceonly_saga_pending SET token = ?, free_at = ${now}, deliveries = 0 WHERE token = ? RETURNING token`
  return (await tx.query(text, [newToken, token])).length > 0
}
