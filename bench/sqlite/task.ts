import { DatabaseSync } from 'node:sqlite'
import type { Slices } from '../harness/load.ts'
import { mustEqual } from '../harness/program.ts'

export interface SqliteTask {
  readonly path: string
  readonly callers: number
  readonly warmUpMs: number
  readonly measureMs: number
  readonly slices?: Slices
}

/**
 * The log grows until its first checkpoint and is written over from then on, and an fsync of what was written before
 * is several times as fast. A store that runs for more than seconds is past that, so both sides have to be. By hand a
 * request writes four pages and the log has a thousand; of ours many requests share a page, and the log may have four
 * thousand.
 */
export const WARM_UP_BY_HAND = 1_000
export const WARM_UP_OURS = 10_000

const SUCCEEDED = 2

/** Looks into the file with a connection of its own: every request is there, settled, and nothing else is. */
export function mustHold(path: string, records: number): void {
  const db = new DatabaseSync(path)
  const count = db.prepare('SELECT count(*) AS records, sum(state = ?) AS settled FROM onceonly_records').get(SUCCEEDED)
  mustEqual('records', count?.['records'], records)
  mustEqual('settled records', count?.['settled'], records)
  db.close()
}
