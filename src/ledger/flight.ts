import type { OnceError } from '../core/errors.ts'
import type { RecordId } from '../core/identity.ts'
import type { Replayable } from './cache.ts'
import type { Command } from './declared.ts'
import type { Packed } from './outcome.ts'

/** How a command ended, before anybody's right to see it was looked at. */
export type Landing =
  | { readonly kind: 'executed'; readonly value: unknown; readonly packed: Packed }
  | { readonly kind: 'failed'; readonly data: string | null; readonly cause: unknown }
  | { readonly kind: 'settled'; readonly record: Replayable; readonly waited: boolean; readonly cached: boolean }
  | { readonly kind: 'refused'; readonly error: OnceError }
  /** The claim was given back: whoever joined decides anew. */
  | { readonly kind: 'released'; readonly error: OnceError }

/** One command under way in this process. Identical ones join it before a connection is borrowed. */
export interface Flight {
  readonly command: Command
  /** True when our own attempt runs the effect, false when somebody else's answer is awaited. */
  readonly runs: Promise<boolean>
  readonly landed: Promise<Landing>
  /** Callers who still want the answer: when none is left before the effect began, the claim is given back. */
  callers: number
}

export interface Flights {
  get(id: RecordId): Flight | undefined
  start(command: Command, lead: (flight: Flight, decided: (runs: boolean) => void) => Promise<Landing>): Flight
  /** Resolves when none is under way. */
  drain(): Promise<void>
}

export function createFlights(): Flights {
  const flights = new Map<RecordId, Flight>()
  return {
    get: (id) => flights.get(id),
    start(command, lead) {
      let decided: (runs: boolean) => void = () => {}
      const runs = new Promise<boolean>((resolve) => {
        decided = resolve
      })
      const flight: { -readonly [name in keyof Flight]: Flight[name] } = {
        command,
        runs,
        landed: new Promise(() => {}),
        callers: 0,
      }
      flights.set(command.id, flight)
      const land = () => {
        flights.delete(command.id)
        decided(false)
      }
      flight.landed = lead(flight, decided).then(
        (landing) => {
          land()
          return landing
        },
        (error: unknown) => {
          land()
          throw error
        },
      )
      // Callers may all have left: nobody must crash the process for an answer that nobody wants.
      flight.landed.catch(() => {})
      return flight
    },
    async drain() {
      while (flights.size > 0) await Promise.allSettled([...flights.values()].map((flight) => flight.landed))
    },
  }
}
