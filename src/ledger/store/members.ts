import type { SqlSeam } from './sql.ts'

/**
 * The living processes of one kind: a row each, which its process keeps alive. One row is renewed, however much the process
 * holds; what a process held whose row is gone is free.
 */
export interface Members {
  /** Enters the list, or stays in it. */
  join(id: string, leaseMs: number): Promise<void>
  /** Stays in the list. False when the row is gone: others have taken over what it held. */
  renew(id: string, leaseMs: number): Promise<boolean>
  leave(id: string): Promise<void>
  /** Removes those whose lease ended so long ago. */
  removeLapsed(agoMs?: number): Promise<void>
  /** How many live. */
  count(): Promise<number>
}

/** The statement that makes a table of members. */
export function membersTable(table: string, text: string, integer: string): string {
  return `CREATE TABLE ${table} (id ${text} PRIMARY KEY, lease_until ${integer} NOT NULL)`
}

export function createMembers({ query, now }: Pick<SqlSeam, 'query' | 'now'>, table: string): Members {
  return {
    async join(id, leaseMs) {
      const text = `INSERT INTO ${table} (id, lease_until) VALUES (?, ${now} + ?)
        ON CONFLICT (id) DO UPDATE SET lease_until = excluded.lease_until`
      await query(text, [id, leaseMs])
    },
    async renew(id, leaseMs) {
      return (
        (await query(`UPDATE ${table} SET lease_until = ${now} + ? WHERE id = ? RETURNING id`, [leaseMs, id])).length >
        0
      )
    },
    async leave(id) {
      await query(`DELETE FROM ${table} WHERE id = ?`, [id])
    },
    async removeLapsed(agoMs = 0) {
      await query(`DELETE FROM ${table} WHERE lease_until <= ${now} - ?`, [agoMs])
    },
    async count() {
      const [row] = await query<{ n: unknown }>(
        `SELECT count(*) AS n FROM ${table} WHERE lease_until > (SELECT ${now})`,
      )
      return Number(row?.n)
    },
  }
}
