import { postgresStore } from 'onceonly/postgres'
import { sqliteStore } from 'onceonly/sqlite'
import { Pool } from 'pg'
import type { OrmRow } from './app/row.ts'

/** The store beside an ORM, as an application has it. */
export function storeOf({ sqlite }: OrmRow, url: string) {
  return sqlite === undefined ? postgresStore(new Pool({ connectionString: url })) : sqliteStore(url, sqlite)
}
