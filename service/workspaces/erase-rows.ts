import type { SqlValue } from 'onceonly'
import type { Base } from '../store.ts'

/** Which rows belong to the owner. */
export interface Selection {
  readonly text: string
  readonly values: readonly SqlValue[]
}

/** Rows of one statement, so that none holds others up. */
export const ROWS = 500

/** Counts and removes rows, a bounded number at a time. */
export interface OwnRows {
  count(table: string, selection: Selection): Promise<number>
  remove(table: string, key: string, selection: Selection, progress: () => void): Promise<number>
}

export function createOwnRows({ sql }: Base): OwnRows {
  return {
    async count(table, { text, values }) {
      const [row] = await sql.query<{ n: unknown }>(`select count(*) as n from ${table} where ${text}`, values)
      return Number(row?.n ?? 0)
    },
    async remove(table, key, { text, values }, progress) {
      let removed = 0
      for (;;) {
        const some = `select ${key} from ${table} where ${text} limit ${ROWS}`
        const gone = await sql.query(`delete from ${table} where (${key}) in (${some}) returning 1 as gone`, values)
        removed += gone.length
        progress()
        if (gone.length < ROWS) return removed
      }
    },
  }
}

/** Some tables of the library come into being when they are first used. */
export async function hasRoom({ query }: Pick<Base['sql'], 'query'>, room: string): Promise<boolean> {
  return (await query('select 1 from onceonly_migrations where room = ? limit 1', [room])).length > 0
}

/** Whether a body that was stored as JSON has this text as a whole value somewhere. */
export function mentions(body: unknown, text: string): boolean {
  return JSON.stringify(body)?.includes(JSON.stringify(text)) ?? false
}
