import { DatabaseSync } from 'node:sqlite'
import { listen, readTask, tell } from '../crash/member.ts'

/** A process of somebody else's that keeps SQLite's only write lock until it is told to let go. */
export interface LockTask {
  readonly path: string
}

const { path } = readTask<LockTask>()
const orders = listen()
const db = new DatabaseSync(path, { timeout: 5_000 })
db.exec('BEGIN IMMEDIATE')
tell({ kind: 'holding' })
await orders.next()
db.exec('COMMIT')
tell({ kind: 'released' })
db.close()
process.exit(0)
