import type { Deadline } from '../deadline.ts'
import type { HeldConnection, ServerErrors } from './calls.ts'

/**
 * Connections of the store's own for the batches, taken from the pool when they are first needed and kept: their
 * statements stay prepared and their settings stay the store's.
 */
export interface Lanes<C> {
  /** Runs the work on a free lane. A lane that broke gets a new connection at its next use. */
  use<T>(deadline: Deadline, work: (connection: C) => Promise<T>): Promise<T>
  /** Closes the connections of free lanes. */
  rest(): void
  stop(): void
}

interface Lane<C> {
  connection: C | null
}

export interface LanesOptions<C> {
  readonly count: number
  readonly errors: Pick<ServerErrors, 'storeError' | 'timeoutError' | 'stoppedError'>
  borrow(deadline: Deadline): Promise<C>
  /** The settings of a new connection. */
  prepare(connection: C): Promise<unknown>
  /** False where a connection goes back to the pool after every use; then it gets no settings. */
  keeps?(): boolean
}

export function createLanes<C extends HeldConnection & { readonly broken: Error | null }>({
  count,
  errors: { storeError, timeoutError, stoppedError },
  borrow,
  prepare,
  keeps = () => true,
}: LanesOptions<C>): Lanes<C> {
  const free: Lane<C>[] = Array.from({ length: count }, () => ({ connection: null }))
  const waiting: ((lane: Lane<C>) => void)[] = []
  let stopped = false

  /** The lane that was free last, because its connection is the warmest; a lonely caller needs only one. */
  function take(deadline: Deadline): Lane<C> | Promise<Lane<C>> {
    const lane = free.pop()
    if (lane !== undefined) return lane
    return new Promise((resolve, reject) => {
      const off = deadline.onPassed(() => {
        waiting.splice(waiting.indexOf(given), 1)
        reject(timeoutError(deadline.timeoutMs, 'no'))
      })
      const given = (next: Lane<C>) => {
        off()
        resolve(next)
      }
      waiting.push(given)
    })
  }

  function giveBack(lane: Lane<C>): void {
    if (!keeps()) {
      lane.connection?.release()
      lane.connection = null
    }
    if (lane.connection?.broken !== null) lane.connection = null
    const next = waiting.shift()
    if (next !== undefined) next(lane)
    else free.push(lane)
  }

  async function open(deadline: Deadline): Promise<C> {
    const connection = await borrow(deadline)
    const off = deadline.onPassed(() => connection.destroy(timeoutError(deadline.timeoutMs, 'no')))
    try {
      await prepare(connection)
      return connection
    } catch (error) {
      connection.destroy(error as Error)
      throw storeError(error, 'no')
    } finally {
      off()
    }
  }

  /** Closed rather than returned: others must not inherit these settings, and resetting could undo the user's. */
  function rest(): void {
    for (const lane of free) {
      lane.connection?.destroy(stoppedError())
      lane.connection = null
    }
  }

  return {
    use: async (deadline, work) => {
      if (stopped) throw stoppedError()
      const lane = await take(deadline)
      try {
        if (lane.connection === null || lane.connection.broken !== null) lane.connection = await open(deadline)
        const connection = lane.connection
        const off = deadline.onPassed(() => connection.destroy(timeoutError(deadline.timeoutMs, 'maybe')))
        try {
          return await work(connection)
        } finally {
          off()
        }
      } finally {
        giveBack(lane)
      }
    },
    rest,
    stop: () => {
      stopped = true
      rest()
    },
  }
}
