import { hasEnded } from './ended.ts'
import type { SqlSeam } from './sql.ts'

/**
 * The living processes of one kind: a row each, which its process keeps alive. One row is renewed, however much the process
 * holds; what a process held whose row is gone is free.
 */
export interface Members {
  /** Enters the list, or stays in it. */
  join(id: string, leaseMs: number): Promise<Standing>
  /** Stays in the list. False when the row is gone: others have taken over what it held. */
  renew(id: string, leaseMs: number): Promise<boolean>
  leave(id: string): Promise<void>
  /** Removes those whose lease ended so long ago. */
  removeLapsed(agoMs?: number): Promise<void>
}

export interface Standing {
  /** How many live, itself included. */
  readonly living: number
  /** How many rows are its own by the record. */
  readonly held: number
}

/** The statement that makes a table of members. */
export function membersTable(table: string, text: string, integer: string): string {
  return `CREATE TABLE ${table} (id ${text} PRIMARY KEY, lease_until ${integer} NOT NULL)`
}

/** A process that stays alive changes nothing that others wait for. */
const QUIET = { quiet: true }

/** @param holdings the table of what members hold, by its column `holder` */
export function createMembers(
  { query, now }: Pick<SqlSeam, 'query' | 'now'>,
  table: string,
  holdings?: string,
): Members {
  const held = holdings === undefined ? '0' : `(SELECT count(*) FROM ${holdings} AS h WHERE h.holder = ${table}.id)`
  return {
    async join(id, leaseMs) {
      const others = `SELECT count(*) FROM ${table} AS o WHERE o.id <> ${table}.id AND o.lease_until > (SELECT ${now})`
      const text = `INSERT INTO ${table} (id, lease_until) VALUES (?, ${now} + ?)
        ON CONFLICT (id) DO UPDATE SET lease_until = excluded.lease_until RETURNING (${others}) AS others, ${held} AS held`
      const [row] = await query<{ others: unknown; held: unknown }>(text, [id, leaseMs], QUIET)
      return { living: Number(row?.others) + 1, held: Number(row?.held) }
    },
    async renew(id, leaseMs) {
      const text = `UPDATE ${table} SET lease_until = ${now} + ? WHERE id = ? RETURNING id`
      return (await query(text, [leaseMs, id], QUIET)).length > 0
    },
    async leave(id) {
      await query(`DELETE FROM ${table} WHERE id = ?`, [id])
    },
    async removeLapsed(agoMs = 0) {
      if (!(await hasEnded({ query, now }, { table, column: 'lease_until' }, agoMs))) return
      await query(`DELETE FROM ${table} WHERE lease_until <= ${now} - ?`, [agoMs])
    },
  }
}
