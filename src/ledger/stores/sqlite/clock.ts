import { readFileSync } from 'node:fs'
import { limits } from '../../core/limits.ts'

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

export function nowBy(anchor: Anchor, source: TimeSource): number {
  return Math.floor(anchor.wallMs + source.monotonicMs() - anchor.monotonicMs + anchor.offsetMs)
}

/** The lease's end of a record that was granted before the boot: past, grace included. */
export function endBeforeBoot(anchor: Anchor): number {
  return anchor.wallMs - limits.leaseGraceMs
}

/** Whether the anchor counts for this process: same boot, and its monotonic clock has not started again. */
export function isAnchored(anchor: Anchor, source: TimeSource): boolean {
  return anchor.bootId === source.bootId() && anchor.monotonicMs <= source.monotonicMs()
}
