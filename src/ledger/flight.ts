import type { CachedReplay, Replayable } from './cache.ts'
import type { OnceError } from './core/errors.ts'
import type { RecordId } from './core/identity.ts'
import type { Command } from './declared.ts'
import type { Packed } from './outcome.ts'

/** How a command ended, before a caller's right to see it was checked. */
export type Landing =
  | { readonly kind: 'executed'; readonly value: unknown; readonly packed: Omit<Packed, 'problem'> }
  | { readonly kind: 'failed'; readonly data: string | null; readonly cause?: unknown }
  | {
      readonly kind: 'settled'
      readonly record: Replayable
      readonly waited: boolean
      readonly cached: CachedReplay | null
    }
  | { readonly kind: 'refused'; readonly error: OnceError }
  /** The claim was given back: callers that joined decide again. */
  | { readonly kind: 'released'; readonly error: OnceError }
  /** The store failed, or a transaction was rolled back: every caller gets the error. */
  | { readonly kind: 'thrown'; readonly error: unknown }

/** One command under way in this process. Identical ones join it before a connection is borrowed. */
export interface Flight {
  readonly command: Command
  /** True when our own attempt runs the effect, false when another attempt's answer is awaited; null while undecided. */
  runs: boolean | null
  /** The caller that leads it left before the effect began: a claim that is granted now is given back. */
  abandoned: boolean
  landing: Landing | null
  /** Called at every change. Most flights are joined by no caller, and have no set. */
  listeners: Set<() => void> | null
  /** When its claim was sent, where its outcome is to answer for a store that does not; null for all others. */
  keptSince: number | null
  /** The next one of the same bucket. */
  next: Flight | null
}

export interface Flights {
  get(id: RecordId): Flight | null
  /** Identical commands join it; `apart`, it flies beside the one that they join. */
  start(command: Command, apart: boolean): Flight
  land(flight: Flight, landing: Landing): void
  /** Its lease is over, but its effect still runs, perhaps forever: twins ask the store instead of this flight. */
  leave(flight: Flight): void
  /** Whether twins still join it. */
  isJoined(flight: Flight): boolean
  /** Resolves when none is under way. */
  drain(): Promise<void>
}

export class OwnFlight implements Flight {
  declare readonly command: Command
  declare runs: boolean | null
  declare abandoned: boolean
  declare landing: Landing | null
  declare listeners: Set<() => void> | null
  declare keptSince: number | null
  declare next: Flight | null

  constructor(command: Command) {
    this.command = command
    this.runs = null
    this.abandoned = false
    this.landing = null
    this.listeners = null
    this.keptSince = null
    this.next = null
  }
}

/** A wait for something of a flight. Stopped by a caller that leaves, so that a long flight keeps no trace of it. */
export interface Watch<T> extends Disposable {
  /** What `look` sees of the flight, now or after one of its changes. */
  readonly seen: Promise<T>
}

export function watch<T>(flight: Flight, look: () => T | null): Watch<T> {
  const now = look()
  if (now !== null) return { seen: Promise.resolve(now), [Symbol.dispose]: () => {} }
  const { promise, resolve } = Promise.withResolvers<T>()
  const listener = () => {
    const value = look()
    if (value === null) return
    flight.listeners?.delete(listener)
    resolve(value)
  }
  flight.listeners ??= new Set()
  flight.listeners.add(listener)
  return { seen: promise, [Symbol.dispose]: () => void flight.listeners?.delete(listener) }
}

/** The first word counts. */
export function decideRuns(flight: Flight, runs: boolean): void {
  if (flight.runs !== null) return
  flight.runs = runs
  if (flight.listeners !== null) changed(flight.listeners)
}

function changed(listeners: ReadonlySet<() => void>): void {
  for (const listener of listeners) listener()
}

/** A power of two, so that a hash is cut by a mask. Grows with the flights that are under way at once. */
const BUCKETS_FIRST = 256

/**
 * Flights by the id of their record, chained through their own fields. Not a `Map`: entries that come and go with every
 * request fill it up, and the tables that it leaves behind keep requests alive until the next full collection.
 */
export function createFlights(): Flights {
  /** Flights that no caller joins, or not any more; their late outcome still counts. */
  const apart = new Set<Flight>()
  let buckets: (Flight | null)[] = Array(BUCKETS_FIRST).fill(null)
  let size = 0

  function all(): Flight[] {
    const flights: Flight[] = []
    for (const first of buckets) for (let each = first; each !== null; each = each.next) flights.push(each)
    return flights
  }

  function grow(): void {
    const flights = all()
    buckets = Array(2 * buckets.length).fill(null)
    for (const each of flights) {
      const at = placeOf(each.command.id)
      each.next = buckets[at] ?? null
      buckets[at] = each
    }
  }

  /** Ids are hexadecimal digits of a digest, so that any eight of them are a hash. */
  function placeOf(id: RecordId): number {
    let hash = 0
    for (let at = 0; at < 8; at++) hash = (hash << 4) ^ id.charCodeAt(at)
    return hash & (buckets.length - 1)
  }

  function get(id: RecordId): Flight | null {
    let each = buckets[placeOf(id)] ?? null
    while (each !== null && each.command.id !== id) each = each.next
    return each
  }

  /** Whether it was joined. */
  function remove(flight: Flight): boolean {
    const at = placeOf(flight.command.id)
    let before: Flight | null = null
    for (let each = buckets[at] ?? null; each !== null; before = each, each = each.next) {
      if (each !== flight) continue
      if (before === null) buckets[at] = each.next
      else before.next = each.next
      flight.next = null
      size--
      return true
    }
    return false
  }

  return {
    get,
    isJoined: (flight) => get(flight.command.id) === flight,
    start(command, isApart) {
      const flight = new OwnFlight(command)
      if (isApart) {
        apart.add(flight)
        return flight
      }
      if (++size > buckets.length) grow()
      const at = placeOf(command.id)
      flight.next = buckets[at] ?? null
      buckets[at] = flight
      return flight
    },
    land(flight, landing) {
      // Callers that are notified must not find it any more.
      if (!remove(flight)) apart.delete(flight)
      flight.landing = landing
      flight.runs ??= false
      if (flight.listeners !== null) changed(flight.listeners)
    },
    leave(flight) {
      // A lease may end after its flight has landed, while the outcome is still being written.
      if (!remove(flight)) return
      apart.add(flight)
      if (flight.listeners !== null) changed(flight.listeners)
    },
    async drain() {
      while (size + apart.size > 0) {
        await Promise.all([...all(), ...apart].map((flight) => watch(flight, () => flight.landing).seen))
      }
    },
  }
}
