import { DatabaseSync } from 'node:sqlite'
import { mustEqual } from '../harness/program.ts'

export interface SqliteTask {
  readonly path: string
  readonly callers: number
  readonly warmUpMs: number
  readonly measureMs: number
}

const SUCCEEDED = 2

/** Looks into the file with a connection of its own: every request is there, settled, and nothing else is. */
export function mustHold(path: string, records: number): void {
  const db = new DatabaseSync(path)
  const count = db.prepare('SELECT count(*) AS records, sum(state = ?) AS settled FROM onceonly_records').get(SUCCEEDED)
  mustEqual('records', count?.['records'], records)
  mustEqual('settled records', count?.['settled'], records)
  db.close()
}
