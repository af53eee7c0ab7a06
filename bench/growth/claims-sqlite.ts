import { DatabaseSync } from 'node:sqlite'
import { sqliteStore } from 'onceonly/sqlite'
import { answer, mustEqual, readTask } from '../harness/program.ts'
import { WARM_UP_OURS } from '../sqlite/task.ts'
import type { ClaimsTask } from './claims.ts'
import { measureClaims } from './claims.ts'

const task = readTask<ClaimsTask & { readonly path: string }>()
const before = count()
const store = sqliteStore(task.path)
const { claims, swept, figures } = await measureClaims(store, { ...task, warmUpRequests: WARM_UP_OURS })
await store.stop()
mustEqual('records', count(), before + claims - swept)
answer(figures)

function count(): number {
  const db = new DatabaseSync(task.path)
  const row = db.prepare('SELECT count(*) AS records FROM onceonly_records').get()
  db.close()
  return Number(row?.['records'])
}
