import type { Pool } from 'pg'
import type { Slices } from '../harness/load.ts'
import type { PostgresPlace } from '../harness/postgres.ts'
import { mustEqual } from '../harness/program.ts'

export interface PostgresTask extends PostgresPlace {
  readonly callers: number
  readonly warmUpMs: number
  readonly measureMs: number
  readonly slices?: Slices
}

/** Compiles the code of both sides before one caller is measured alone. */
export const WARM_UP = { warmUpRequests: 5_000, warmUpCallers: 64 }

const SUCCEEDED = 2

/** Every request is there, settled, and nothing else is; and both sides wrote as durably as the server can. */
export async function mustHold(pool: Pool, records: number): Promise<void> {
  const { rows } = await pool.query<Record<string, unknown>>(
    `SELECT count(*)::int AS records, count(*) FILTER (WHERE state = $1)::int AS settled,
       current_setting('synchronous_commit') AS durability FROM onceonly_records`,
    [SUCCEEDED],
  )
  mustEqual('records', rows[0]?.['records'], records)
  mustEqual('settled records', rows[0]?.['settled'], records)
  mustEqual('synchronous_commit', rows[0]?.['durability'], 'on')
}
