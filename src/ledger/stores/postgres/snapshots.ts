/** What is committed on the server, as one short text: `xmin:xmax:`, and those in between that are still under way. */
export const SNAPSHOT_SQL = 'SELECT pg_current_snapshot()::text AS snapshot'

/** Finds from two snapshots whether a transaction has written anything in between. */
export interface Snapshots {
  /** A transaction of this process that does not count. */
  quiet(transaction: string): void
  /** Whether anything was committed since the last call. Also true where that cannot be said, as on the first. */
  hasChanged(snapshot: string): boolean
}

/** Quiet transactions between two snapshots; more come only when no snapshot was taken for long. */
const QUIET_MOST = 1_000

/**
 * A transaction gets a number when it first writes, and every number is given once: it moves the end of the next snapshot,
 * or, when its end is that of a transaction that was under way, it leaves the list.
 */
export function createSnapshots(): Snapshots {
  let last: { readonly end: bigint; readonly underWay: string } | null = null
  let quiet = new Set<bigint>()

  return {
    quiet(transaction) {
      if (quiet.size < QUIET_MOST) quiet.add(BigInt(transaction))
    },
    hasChanged(snapshot) {
      const [, end = '0', underWay = ''] = snapshot.split(':')
      const now = { end: BigInt(end), underWay }
      const before = last
      const left = quiet
      last = now
      // One whose number is not known yet when its commit is seen counts once, and never later.
      quiet = new Set([...left].filter((number) => number >= now.end))
      if (before === null || before.underWay !== now.underWay) return true
      // Only as many steps as there are quiet ones.
      if (now.end - before.end > BigInt(left.size)) return true
      for (let number = before.end; number < now.end; number++) if (!left.has(number)) return true
      return false
    },
  }
}
