import type { RecordId } from '../../core/identity.ts'
import { SECOND } from '../../core/limits.ts'
import type { Wake, Watch } from '../../store/port.ts'
import type { Calls } from '../../store/sql/calls.ts'
import type { Connection } from './connection.ts'

export interface Watchers {
  watch(wake: Wake): Watch
  /** Changes that this process has committed: wakes the waiters here, and counts a wake for other processes. */
  committed(connection: Connection, ids: readonly RecordId[]): Promise<void>
  stop(): void
}

/** MariaDB has no notifications. A waiter in another process learns of a change this much later at most. */
const POLL_MS = 50
const POLL_CALL = { timeoutMs: 1 * SECOND }

/** A sequence is not part of a transaction, so that those who wake never wait for each other. */
const COUNT = 'SELECT NEXTVAL(onceonly_wakes)'
const COUNTED = 'SELECT next_not_cached_value AS wakes FROM onceonly_wakes'

export function createWatchers(calls: Calls<Connection>): Watchers {
  const wakes = new Set<Wake>()
  let timer: NodeJS.Timeout | null = null
  let known: number | null = null
  let asking: Promise<void> | null = null

  function tell(ids: readonly RecordId[] | null): void {
    // Later: a caller must never be called back from inside its own call.
    queueMicrotask(() => {
      for (const wake of wakes) wake(ids)
    })
  }

  async function ask(): Promise<void> {
    try {
      const [row] = await calls.read(POLL_CALL, (connection) => connection.query(COUNTED))
      const counted = Number(row?.['wakes'])
      if (known !== null && known !== counted) tell(null)
      known = counted
    } catch {
      // What happens while the store is away counts as a wake once it is back.
      known = -1
    }
  }

  function poll(): Promise<void> {
    asking ??= ask().finally(() => {
      asking = null
    })
    return asking
  }

  function pollOn(): void {
    if (timer !== null) return
    const own = setTimeout(() => {
      void poll().finally(() => {
        if (timer !== own) return
        timer = null
        if (wakes.size > 0) pollOn()
      })
    }, POLL_MS)
    own.unref()
    timer = own
  }

  function pollOff(): void {
    if (timer !== null) clearTimeout(timer)
    timer = null
    known = null
  }

  return {
    watch: (wake) => {
      // A function may watch twice, and each of its watches ends by itself.
      const own: Wake = (ids) => wake(ids)
      wakes.add(own)
      pollOn()
      const stop = () => {
        wakes.delete(own)
        if (wakes.size === 0) pollOff()
      }
      return { ready: poll(), stop }
    },
    committed: async (connection, ids) => {
      if (ids.length === 0) return
      tell(ids)
      // A hint: a waiter that misses it polls soon.
      await connection.query(COUNT).catch(() => undefined)
    },
    stop: () => {
      wakes.clear()
      pollOff()
    },
  }
}
