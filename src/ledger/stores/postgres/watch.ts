import type { RecordId } from '../../core/identity.ts'
import { SECOND } from '../../core/limits.ts'
import { backoffMs } from '../../core/retry.ts'
import { createDeadline, type Deadline } from '../../store/deadline.ts'
import type { Wake, Watch } from '../../store/port.ts'
import type { RoomTopic, WakeCause } from '../../store/sql.ts'
import { checkRoomTopic, EVERY_TOPIC } from '../../store/sql.ts'
import { createWaiters } from '../../store/waiters.ts'
import type { Clients } from './clients.ts'
import type { Connection } from './connection.ts'
import type { PgNotification } from './driver.ts'
import { errors } from './errors.ts'
import { createLooks, LOOK_MS, type Looks, pause } from './looks.ts'
import type { Names } from './names.ts'
import { quoteText } from './names.ts'
import { createSnapshots, SNAPSHOT_SQL } from './snapshots.ts'

export interface Watchers {
  watch(wake: Wake): Watch
  /** A change that was committed by this process: no notification of the server is needed. */
  changed(ids: readonly RecordId[]): void
  /** For other rooms: an expression that notifies, and the ear for it. */
  wake(topic: RoomTopic): string
  /** The same for the listeners of all topics. */
  readonly wakeAll: string
  listen(topic: RoomTopic, wake: (cause: WakeCause) => void): Watch
  /** A transaction of this process, by its number, that no listener needs to hear of. */
  quiet(transaction: string): void
  /** Settles when no connection listens any more, unless there are watches. */
  rest(): Promise<void>
  stop(): Promise<void>
}

/** Connecting, and each sign of life, must be answered within this. */
const ANSWER_MS = 10 * SECOND
const RECONNECT = { baseMs: 100, capMs: 5 * SECOND }
/** Without a session of our own there are no notifications. What another process changed is noticed this much later at most. */
const POLL_MS = 500

export function createWatchers(clients: Clients, names: Names): Watchers {
  const waiters = createWaiters()
  const ears = new Set<Ear>()
  const snapshots = createSnapshots()
  /** Callers that wait for records have little time. */
  const looks = createLooks(() => waiters.watches.size > 0)
  let listener: Listener | null = null
  let ending: Promise<unknown> = Promise.resolve()

  function heard(payload: string | null): void {
    looks.rouse()
    if (payload === null || !payload.startsWith(ROOM)) waiters.wake(payload === null ? null : [payload])
    if (payload === null || payload === ROOM + EVERY_TOPIC) return wakeEars('topic')
    for (const { topic, wake } of ears) if (payload === ROOM + topic) wake('topic')
  }

  function wakeEars(cause: WakeCause): void {
    for (const { wake } of ears) wake(cause)
  }

  /** Null when the server could not say. */
  function looked(snapshot: string | null): void {
    const hasChanged = snapshot === null || snapshots.hasChanged(snapshot)
    looks.looked(hasChanged)
    if (!hasChanged) return
    if (clients.mode() === 'session') return wakeEars('change')
    // There are no notifications: whatever changed may be what they wait for.
    wakeEars('topic')
    waiters.wake(null)
  }

  /**
   * One connection for all watches. What waits for records keeps its watch for a while, so that it is not made again.
   */
  function ready(): Promise<void> {
    listener ??= createListener(clients, names, { heard, looked, looks })
    return listener.ready()
  }

  async function rest(): Promise<void> {
    if (listener !== null && waiters.watches.size === 0 && ears.size === 0) {
      const last = listener
      listener = null
      ending = Promise.all([ending, last.stop()])
    }
    await ending
  }

  function watchUntil(end: () => void): Watch {
    const stop = () => {
      end()
      void rest()
    }
    return { ready: ready(), stop }
  }

  // As text: Prisma cannot read a column of the type that it has by itself.
  const wake = (topic: string) => `pg_notify(${quoteText(names.channel)}, ${quoteText(ROOM + topic)})::text`
  return {
    watch: (wake) => {
      looks.rouse()
      return watchUntil(waiters.add(wake))
    },
    wake: (topic) => wake(checkRoomTopic(topic)),
    wakeAll: wake(EVERY_TOPIC),
    quiet: snapshots.quiet,
    listen: (topic, wake) => {
      const ear = { topic: checkRoomTopic(topic), wake }
      ears.add(ear)
      return watchUntil(() => ears.delete(ear))
    },
    changed: (ids) => {
      if (ids.length === 0 || waiters.watches.size === 0) return
      waiters.wakeSoon(ids)
    },
    rest,
    stop: () => {
      waiters.clear()
      ears.clear()
      return rest()
    },
  }
}

interface Ear {
  readonly topic: RoomTopic
  wake(cause: WakeCause): void
}

/** Distinguishes a room's topic from the id of a record, which is hexadecimal. */
const ROOM = 'room:'

interface Listener {
  /** Settles at the first LISTEN that was acknowledged, or that failed: then those who wait poll. */
  ready(): Promise<void>
  stop(): Promise<void>
}

interface Heard {
  /** A notification; null when some may have been missed. */
  heard(payload: string | null): void
  /** What is committed on the server, in its own words; null when it did not say. */
  looked(snapshot: string | null): void
  /** For all listeners together, so that none of them polls; and a sign of life. */
  readonly looks: Looks
}

/**
 * One connection that does nothing but LISTEN. It comes back by itself, and then says that anything may have changed. Where
 * a connection leads to another session in every transaction it would hear nothing: then it only looks.
 */
function createListener(clients: Clients, names: Names, { heard, looked, looks }: Heard): Listener {
  const stopping = new AbortController()
  let ready = Promise.withResolvers<void>()
  const life = live()

  async function live(): Promise<void> {
    for (let failures = 0, first = true; !stopping.signal.aborted; first = false) {
      const connection = await connect().catch(() => null)
      if (clients.mode() === 'transaction') {
        ready.resolve()
        await lookUntilStopped()
        return
      }
      if (connection === null) {
        ready.resolve()
        failures += 1
        await pauseLooking(backoffMs(failures, RECONNECT, Math.random()))
        continue
      }
      failures = 0
      ready.resolve()
      // Changes during the disconnect are unknown.
      if (!first) heard(null)
      await untilBroken(connection)
      ready = Promise.withResolvers<void>()
    }
    ready.resolve()
  }

  /** Meanwhile listeners look for themselves, once a second. */
  async function pauseLooking(ms: number): Promise<void> {
    for (let leftMs = ms; leftMs > 0 && !stopping.signal.aborted; leftMs -= LOOK_MS) {
      looked(null)
      await pause(Math.min(leftMs, LOOK_MS), stopping.signal)
    }
  }

  async function lookUntilStopped(): Promise<void> {
    while (!stopping.signal.aborted) {
      await pause(POLL_MS, stopping.signal)
      if (stopping.signal.aborted) return
      const deadline = createDeadline(ANSWER_MS, stopping.signal)
      try {
        const connection = await clients.borrow(deadline)
        await look(connection, deadline)
        connection.release()
      } catch {
        looked(null)
      } finally {
        deadline.end()
      }
    }
  }

  /** Null when a connection cannot listen. */
  async function connect(): Promise<Connection | null> {
    if (clients.mode() === 'transaction') return null
    const deadline = createDeadline(ANSWER_MS, stopping.signal)
    try {
      const connection = await clients.borrow(deadline)
      deadline.onPassed(() => connection.destroy(errors.timeoutError(ANSWER_MS, 'no')))
      const fail = (error: unknown) => {
        connection.destroy(error as Error)
        throw error
      }
      if ((await clients.detect(connection).catch(fail)) === 'transaction') {
        connection.release()
        return null
      }
      connection.client.on('notification', notified)
      await connection.script(`LISTEN ${names.channel}`).catch(fail)
      return connection
    } finally {
      deadline.end()
    }
  }

  function notified({ channel, payload }: PgNotification): void {
    if (channel === names.channel && payload !== undefined) heard(payload)
  }

  async function look(connection: Connection, deadline: Deadline): Promise<void> {
    deadline.onPassed(() => connection.destroy(errors.timeoutError(ANSWER_MS, 'no')))
    try {
      const [result] = await connection.script(SNAPSHOT_SQL)
      const [row] = (result?.rows ?? []) as readonly { readonly snapshot?: string }[]
      looked(row?.snapshot ?? null)
    } catch (error) {
      if (!errors.leavesConnectionUsable(error)) connection.destroy(error as Error)
      looked(null)
    }
  }

  async function untilBroken(connection: Connection): Promise<void> {
    const over = new AbortController()
    connection.whenBroken(() => over.abort())
    const either = AbortSignal.any([over.signal, stopping.signal])
    for (;;) {
      await looks.due(either)
      if (either.aborted) break
      const deadline = createDeadline(ANSWER_MS, stopping.signal)
      await look(connection, deadline).finally(() => deadline.end())
    }
    // Closed rather than returned: no other user of the pool shall get our notifications.
    connection.destroy(new Error('The listener ended.'))
  }

  return {
    ready: () => ready.promise,
    stop: async () => {
      stopping.abort()
      await life
    },
  }
}
