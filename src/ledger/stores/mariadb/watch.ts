import type { RecordId } from '../../core/identity.ts'
import { SECOND } from '../../core/limits.ts'
import type { Wake, Watch } from '../../store/port.ts'
import type { Calls } from '../../store/sql/calls.ts'
import { createWaiters } from '../../store/waiters.ts'
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
  const waiters = createWaiters()
  let timer: NodeJS.Timeout | null = null
  let known: number | null = null
  let asking: Promise<void> | null = null

  async function ask(): Promise<void> {
    try {
      const [row] = await calls.read(POLL_CALL, (connection) => connection.query(COUNTED))
      const counted = Number(row?.['wakes'])
      if (known !== null && known !== counted) waiters.wakeSoon(null)
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
        if (waiters.watches.size > 0) pollOn()
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
      const end = waiters.add(wake)
      pollOn()
      const stop = () => {
        end()
        if (waiters.watches.size === 0) pollOff()
      }
      return { ready: poll(), stop }
    },
    committed: async (connection, ids) => {
      if (ids.length === 0) return
      waiters.wakeSoon(ids)
      // A hint: a waiter that misses it polls soon.
      await connection.query(COUNT).catch(() => undefined)
    },
    stop: () => {
      waiters.clear()
      pollOff()
    },
  }
}
