import { readFileSync } from 'node:fs'
import { limits } from '../../core/limits.ts'
import type { Database } from './driver.ts'
import { otherMachine } from './errors.ts'

/**
 * SQLite has no server and therefore no clock of its own. The store's time is an anchor, kept in the file, plus the
 * distance on the monotonic clock that all processes of one boot share. A wall clock that jumps changes nothing.
 */
export interface TimeSource {
  /** Names the boot whose monotonic clock is read. */
  bootId(): string
  monotonicMs(): number
  /** Asked only when a boot is anchored. */
  wallMs(): number
}

export const systemTime: TimeSource = {
  bootId: () => {
    try {
      return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    } catch {
      // Without a boot id, a monotonic clock that went back shows a new boot. An undetected boot makes the store's time
      // late
      // by the pause, never early: leases end later, and no claim is granted too soon.
      return 'unnamed'
    }
  },
  monotonicMs: () => Number(process.hrtime.bigint()) / 1e6,
  wallMs: () => Date.now(),
}

/** The same for one store: a boot does not change while a process lives, so that its name is asked once. */
export interface Clock extends Omit<TimeSource, 'bootId'> {
  readonly bootId: string
}

export function clockBy(source: TimeSource): Clock {
  return { ...source, bootId: source.bootId() }
}

/** The clock's part of the meta row. */
export interface Anchor {
  readonly bootId: string
  /** Leases under this fence or a smaller one were granted before the boot: they have ended. */
  readonly bootFence: number
  readonly wallMs: number
  readonly monotonicMs: number
  /** Set by tests only; it lives in the store, so that every process on it sees the same time. */
  readonly offsetMs: number
}

/** The store's time. Another boot's anchor means that a second machine writes the same file: nothing is safe then. */
export function nowOf(anchor: Anchor, clock: Clock): number {
  if (anchor.bootId !== clock.bootId) throw otherMachine()
  return Math.floor(anchor.wallMs + clock.monotonicMs() - anchor.monotonicMs + anchor.offsetMs)
}

/** The lease's end of a record that was granted before the boot: past, grace included. */
export function endBeforeBoot(anchor: Anchor): number {
  return anchor.wallMs - limits.leaseGraceMs
}

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
export const READ_META = `SELECT max(fence, coalesce((SELECT max(fence) FROM onceonly_records), 0)) AS fence, fence AS floor, wakes,
    ${ANCHOR}
  FROM onceonly_meta WHERE one = 1`

export const MOVE_META = 'UPDATE onceonly_meta SET fence = ?, wakes = ? WHERE one = 1'
/** A write that changes nothing: it takes the lock of the only writer. */
export const TOUCH_META = 'UPDATE onceonly_meta SET wakes = wakes WHERE one = 1'

export function prepareMeta(db: Database): MetaStatements {
  const read = db.prepare(READ_META)
  const clock = db.prepare(`SELECT ${ANCHOR} FROM onceonly_meta WHERE one = 1`)
  const move = db.prepare(MOVE_META)
  const addOffset = db.prepare('UPDATE onceonly_meta SET offset_ms = offset_ms + ? WHERE one = 1')
  return {
    read: () => read.get() as unknown as Meta,
    clock: () => clock.get() as unknown as Anchor,
    move: (floor, wakes) => void move.run(floor, wakes),
    addOffset: (ms) => void addOffset.run(ms),
  }
}

/** Unless the anchor counts for this process: same boot, and its monotonic clock has not started again. */
export function needsAnchor(db: Database, clock: Clock): boolean {
  const meta = db.prepare(READ_META).get() as unknown as Meta | undefined
  return meta === undefined || meta.bootId !== clock.bootId || meta.monotonicMs > clock.monotonicMs()
}

/** Fences grow with time, so the latest time that the store has given out is among its newest records. */
const NEWEST_ROWS = 1_000

/**
 * Runs inside a write transaction, and checks again there. The first process after a boot sets the clock, never before a time
 * that the store has already given out, and thereby ends every lease that was granted before: their holders are gone.
 * Marking them by their fence takes one row, however many records there are.
 */
export function anchor(db: Database, clock: Clock): void {
  if (!needsAnchor(db, clock)) return
  db.prepare(
    `INSERT OR IGNORE INTO onceonly_meta
       (one, fence, offset_ms, wakes, boot_id, boot_fence, anchor_wall, anchor_monotonic)
     VALUES (1, 0, 0, 0, ?, 0, 0, 0)`,
  ).run(clock.bootId)
  const latest = `SELECT max(at) FROM
    (SELECT max(claimed_at, coalesce(settled_at, 0)) AS at FROM onceonly_records ORDER BY fence DESC LIMIT ${NEWEST_ROWS})`
  db.prepare(
    `UPDATE onceonly_meta SET boot_id = ?, boot_fence = (SELECT fence FROM (${READ_META})), anchor_monotonic = ?,
       anchor_wall = max(?, anchor_wall, coalesce((${latest}), 0) - offset_ms) WHERE one = 1`,
  ).run(clock.bootId, clock.monotonicMs(), Math.floor(clock.wallMs()))
}
