import type { Replayable } from './cache.ts'
import type { OnceError } from './core/errors.ts'
import type { RecordId } from './core/identity.ts'
import type { Command } from './declared.ts'
import type { Packed } from './outcome.ts'

/** How a command ended, before a caller's right to see it was checked. */
export type Landing =
  | { readonly kind: 'executed'; readonly value: unknown; readonly packed: Packed }
  | { readonly kind: 'failed'; readonly data: string | null; readonly cause: unknown }
  | { readonly kind: 'settled'; readonly record: Replayable; readonly waited: boolean; readonly cached: boolean }
  | { readonly kind: 'refused'; readonly error: OnceError }
  /** The claim was given back: callers that joined decide anew. */
  | { readonly kind: 'released'; readonly error: OnceError }

/** One command under way in this process. Identical ones join it before a connection is borrowed. */
export interface Flight {
  readonly command: Command
  /** True when our own attempt runs the effect, false when another attempt's answer is awaited; null while undecided. */
  runs: boolean | null
  /** Wait for that decision. Hardly any flight has one, so it makes no promise by itself. */
  decisionListeners: ((runs: boolean) => void)[] | null
  readonly landed: Promise<Landing>
  /** Called when it is left: callers that joined it decide anew. Most flights are joined by no caller, and have no set. */
  leaveListeners: Set<() => void> | null
  /** Callers who still want the answer: when none is left before the effect began, the claim is given back. */
  callers: number
}

/** Brings a flight to its landing. Never throws before its first await. */
export type Lead = (command: Command, flight: Flight) => Promise<Landing>

export interface Flights {
  get(id: RecordId): Flight | undefined
  /** Identical commands join it; `apart`, it flies beside the one that they join. */
  start(command: Command, lead: Lead, apart?: boolean): Flight
  /** Its lease is over, but its effect still runs, perhaps for ever: twins ask the store instead of this flight. */
  leave(flight: Flight): void
  /** Resolves when none is under way. */
  drain(): Promise<void>
}

export function whetherRuns(flight: Flight): Promise<boolean> {
  if (flight.runs !== null) return Promise.resolve(flight.runs)
  return new Promise((resolve) => void (flight.decisionListeners ??= []).push(resolve))
}

/** The first word counts. */
export function decideRuns(flight: Flight, runs: boolean): void {
  if (flight.runs !== null) return
  flight.runs = runs
  if (flight.decisionListeners !== null) for (const tell of flight.decisionListeners) tell(runs)
}

const NOT_YET = new Promise<never>(() => {})

export function createFlights(): Flights {
  const flights = new Map<RecordId, Flight>()
  /** Flights that no caller joins, or not any more; their late outcome still counts. */
  const left = new Set<Flight>()

  /** No caller joins it any more. False where its id is already that of a later one, or of none. */
  function take(flight: Flight): boolean {
    return flights.get(flight.command.id) === flight && flights.delete(flight.command.id)
  }

  return {
    get: (id) => flights.get(id),
    start(command, lead, apart = false) {
      const flight: { -readonly [name in keyof Flight]: Flight[name] } = {
        command,
        runs: null,
        decisionListeners: null,
        landed: NOT_YET,
        leaveListeners: null,
        callers: 0,
      }
      if (apart) left.add(flight)
      else flights.set(command.id, flight)
      const land = () => {
        take(flight)
        left.delete(flight)
        decideRuns(flight, false)
      }
      flight.landed = lead(command, flight)
      // The first handler, so that callers find the flight gone. It handles failures, too: all callers may have left, and
      // an unhandled rejection would end the process.
      flight.landed.then(land, land)
      return flight
    },
    leave(flight) {
      // A lease may end after its flight has landed, while the outcome is still being written.
      if (!take(flight)) return
      left.add(flight)
      for (const leave of flight.leaveListeners ?? []) leave()
    },
    async drain() {
      while (flights.size + left.size > 0) {
        await Promise.allSettled([...flights.values(), ...left].map((flight) => flight.landed))
      }
    },
  }
}
