import type { Runtime } from '../../runtime/runtime.ts'

/**
 * Which items may be committed synchronously, one by one, in one turn of the event loop. Each of them blocks the process
 * for a commit, so there are few of them, and none when several callers could share one.
 */
export interface SyncTurn {
  /** Whether this item may be committed alone, and counts it. */
  mayWrite(key: string | null): boolean
  /** Counts an item that was committed alone. */
  note(key: string | null): void
  /** Whether two callers wrote in one turn since this was last asked: their items are to be gathered. */
  takeCrowded(): boolean
}

/** Sockets and timers wait for no more commits than this; a single caller's claim and settle are two. */
const WRITES_PER_TURN = 8

export function createSyncTurn(runtime: Runtime): SyncTurn {
  let writes = 0
  let lastKey: string | null = null
  /** The last key was written once only: its caller is probably at work, so another key is of another caller. */
  let open = false
  let crowded = false

  function end(): void {
    writes = 0
    lastKey = null
  }

  function note(key: string | null): void {
    if (writes++ === 0) runtime.soon(end)
    open = key !== lastKey || key === null
    lastKey = key
  }

  return {
    note,
    mayWrite: (key) => {
      const same = key !== null && key === lastKey
      const other = writes > 0 && open && !same
      if (other) crowded = true
      // Items of one key never share a commit, so that nothing is gained by waiting.
      if (other || writes >= WRITES_PER_TURN) return false
      note(key)
      return true
    },
    takeCrowded: () => {
      const was = crowded
      crowded = false
      return was
    },
  }
}
