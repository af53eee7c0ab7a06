import { DatabaseSync } from 'node:sqlite'
import { listen, readTask, report } from '../crash/member.ts'

/** A foreign process that keeps SQLite's only write lock until an order to release it. */
export interface LockTask {
  readonly path: string
}

const { path } = readTask<LockTask>()
const orders = listen()
const db = new DatabaseSync(path, { timeout: 5_000 })
db.exec('BEGIN IMMEDIATE')
report({ kind: 'holding' })
await orders.next()
db.exec('COMMIT')
report({ kind: 'released' })
db.close()
process.exit(0)
