import { postgresStore } from 'onceonly/postgres'
import { createPool, type PostgresPlace, serverCpu } from '../harness/postgres.ts'
import { answer, mustEqual, readTask } from '../harness/program.ts'
import type { ClaimsTask } from './claims.ts'
import { measureClaims } from './claims.ts'

const task = readTask<ClaimsTask & PostgresPlace>()
const pool = createPool(task)
const before = await count()
const store = postgresStore(pool)
const { claims, swept, figures } = await measureClaims(store, task, serverCpu(task))
await store.stop()
mustEqual('records', await count(), before + claims - swept)
await pool.end()
answer(figures)

async function count(): Promise<number> {
  const { rows } = await pool.query<{ records: number }>('SELECT count(*)::int AS records FROM onceonly_records')
  return rows[0]?.records ?? Number.NaN
}
