import type { DatabaseSync } from 'node:sqlite'
import type { Anchor, TimeSource } from './clock.ts'
import { isAnchored, nowBy } from './clock.ts'
import { otherMachine } from './errors.ts'

/** What every write transaction reads first: one row, and the newest end of the index on fences. */
export interface Meta extends Anchor {
  /** The largest fence that was ever granted. */
  readonly fence: number
  /** No fence up to this is granted again, whether or not a record still has it. */
  readonly floor: number
  /** Counts commits that changed a record with waiters, so that other processes need not guess. */
  readonly wakes: number
}

export interface MetaStatements {
  read(): Meta
  /** The clock alone, which is a third of the work. */
  clock(): Anchor
  move(floor: number, wakes: number): void
  addOffset(ms: number): void
}

/**
 * The counter of fences is the newest record's own fence, which stands in a page that the next claim writes anyway: a
 * counter of its own would add a page to every commit. Only when a fence is about to be in no record any more is it
 * written down here, as the floor; a trigger sees to that for every row that is deleted.
 *
 * The names are those of the fields, so that the row is the object.
 */
const ANCHOR = `boot_id AS bootId, boot_fence AS bootFence, anchor_wall AS wallMs, anchor_monotonic AS monotonicMs,
    offset_ms AS offsetMs`
const READ = `SELECT max(fence, coalesce((SELECT max(fence) FROM onceonly_records), 0)) AS fence, fence AS floor, wakes,
    ${ANCHOR}
  FROM onceonly_meta WHERE one = 1`

export function prepareMeta(db: DatabaseSync): MetaStatements {
  const read = db.prepare(READ)
  const clock = db.prepare(`SELECT ${ANCHOR} FROM onceonly_meta WHERE one = 1`)
  const move = db.prepare('UPDATE onceonly_meta SET fence = ?, wakes = ? WHERE one = 1')
  const addOffset = db.prepare('UPDATE onceonly_meta SET offset_ms = offset_ms + ? WHERE one = 1')
  return {
    read: () => read.get() as unknown as Meta,
    clock: () => clock.get() as unknown as Anchor,
    move: (floor, wakes) => void move.run(floor, wakes),
    addOffset: (ms) => void addOffset.run(ms),
  }
}

/** The store's time. Another boot's anchor means that a second machine writes the same file: nothing is safe then. */
export function nowOf(anchor: Anchor, source: TimeSource): number {
  if (anchor.bootId !== source.bootId()) throw otherMachine()
  return nowBy(anchor, source)
}

export function needsAnchor(db: DatabaseSync, source: TimeSource): boolean {
  const meta = db.prepare(READ).get() as unknown as Meta | undefined
  return meta === undefined || !isAnchored(meta, source)
}

/** Fences grow with time, so the latest time that the store has given out is among its newest records. */
const NEWEST_ROWS = 1_000

/**
 * Runs inside a write transaction, and checks again there. The first process after a boot sets the clock, never before a time
 * that the store has already given out, and thereby ends every lease that was granted before: their holders are gone.
 * Marking them by their fence takes one row, however many records there are.
 */
export function anchor(db: DatabaseSync, source: TimeSource): void {
  if (!needsAnchor(db, source)) return
  db.prepare(
    `INSERT OR IGNORE INTO onceonly_meta
       (one, fence, offset_ms, wakes, boot_id, boot_fence, anchor_wall, anchor_monotonic)
     VALUES (1, 0, 0, 0, ?, 0, 0, 0)`,
  ).run(source.bootId())
  const latest = `SELECT max(told) FROM
    (SELECT max(claimed_at, coalesce(settled_at, 0)) AS told FROM onceonly_records ORDER BY fence DESC LIMIT ${NEWEST_ROWS})`
  db.prepare(
    `UPDATE onceonly_meta SET boot_id = ?, boot_fence = (SELECT fence FROM (${READ})), anchor_monotonic = ?,
       anchor_wall = max(?, anchor_wall, coalesce((${latest}), 0) - offset_ms) WHERE one = 1`,
  ).run(source.bootId(), source.monotonicMs(), Math.floor(source.wallMs()))
}
