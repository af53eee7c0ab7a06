import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { listen, readTask, tell } from '../crash/member.ts'

/** A process of somebody else's that keeps SQLite's only write lock for a while. */
export interface LockTask {
  readonly path: string
  readonly holdMs: number
}

const { path, holdMs } = readTask<LockTask>()
listen()
const db = new DatabaseSync(path, { timeout: 5_000 })
db.exec('BEGIN IMMEDIATE')
tell({ kind: 'holding' })
await sleep(holdMs)
db.exec('COMMIT')
tell({ kind: 'released' })
db.close()
process.exit(0)
