import type { DatabaseSync } from 'node:sqlite'
import type { Anchor, TimeSource } from './clock.ts'
import { isAnchored, nowBy } from './clock.ts'
import { otherMachine } from './errors.ts'

/** The one row that every write transaction reads first. */
export interface Meta extends Anchor {
  /** The largest fence that was ever granted. */
  readonly fence: number
  /** The store's time when the counter last moved: a new boot never starts before it. */
  readonly latestAt: number
  /** Counts commits that changed a record somebody waited for, so that other processes need not guess. */
  readonly wakes: number
}

export interface MetaStatements {
  read(): Meta
  /** Written only when something moved: a batch of settles leaves this page alone. */
  move(fence: number, latestAt: number, wakes: number): void
  addOffset(ms: number): void
}

/** Named as the fields are, so that the row is the object. */
const READ = `SELECT fence, latest_at AS latestAt, wakes, boot_id AS bootId, boot_fence AS bootFence,
    anchor_wall AS wallMs, anchor_monotonic AS monotonicMs, offset_ms AS offsetMs
  FROM onceonly_meta WHERE one = 1`

export function prepareMeta(db: DatabaseSync): MetaStatements {
  const read = db.prepare(READ)
  const move = db.prepare('UPDATE onceonly_meta SET fence = ?, latest_at = ?, wakes = ? WHERE one = 1')
  const addOffset = db.prepare('UPDATE onceonly_meta SET offset_ms = offset_ms + ? WHERE one = 1')
  return {
    read: () => read.get() as unknown as Meta,
    move: (fence, latestAt, wakes) => void move.run(fence, latestAt, wakes),
    addOffset: (ms) => void addOffset.run(ms),
  }
}

/** The store's time. Another boot's anchor means that a second machine writes the same file: nothing is safe then. */
export function nowOf(meta: Meta, source: TimeSource): number {
  if (meta.bootId !== source.bootId()) throw otherMachine()
  return nowBy(meta, source)
}

export function needsAnchor(db: DatabaseSync, source: TimeSource): boolean {
  const meta = db.prepare(READ).get() as unknown as Meta | undefined
  return meta === undefined || !isAnchored(meta, source)
}

/**
 * Runs inside a write transaction, and looks again there. The first process after a boot sets the clock anew, never
 * before a time that the store has already told, and thereby ends every lease that was granted before: their holders
 * are gone. Marking them by their fence takes one row, however many records there are.
 */
export function anchor(db: DatabaseSync, source: TimeSource): void {
  if (!needsAnchor(db, source)) return
  const start = 'INSERT OR IGNORE INTO onceonly_meta VALUES (1, 0, 0, 0, 0, ?, 0, 0, 0)'
  db.prepare(start).run(source.bootId())
  db.prepare(
    `UPDATE onceonly_meta SET boot_id = ?, boot_fence = fence, anchor_monotonic = ?,
       anchor_wall = max(?, anchor_wall, latest_at - offset_ms) WHERE one = 1`,
  ).run(source.bootId(), source.monotonicMs(), Math.floor(source.wallMs()))
}
