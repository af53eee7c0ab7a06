import { OnceError } from './core/errors.ts'
import type { Fence } from './core/identity.ts'
import { effectKeyOf } from './core/identity.ts'
import type { Note, Pointer } from './core/record.ts'
import type { Grant } from './core/request.ts'
import { checkNote } from './note.ts'
import { checkPointer } from './outcome.ts'

/** What an effect is given: how to be recognised downstream, and how to notice that it lost its lease. */
export interface Attempt {
  /** Fires when the lease ended or was lost: stop, whatever you do now cannot be recorded. */
  readonly signal: AbortSignal
  /** Grows with every grant: a target that remembers the largest one it saw can refuse a late writer. */
  readonly fence: Fence
  /** From 1. */
  readonly number: number
  /** Equal for every attempt of this command; hand it to the provider. Throws once the lease is over. */
  readonly effectKey: string
  /** One key per provider and step, derived from the effect key. */
  derive(name: string): string
  /** Left by an earlier attempt, or by `attach`. */
  readonly pointer: Pointer | null
  /** Names what this attempt makes: durable, fenced, and visible to those who wait, at once. */
  attach(pointer: Pointer): Promise<void>
  /**
   * Tells operators something about this attempt, above all how many calls of other systems it began: recorded with its
   * outcome, and lost with it. What is said again replaces what was said before.
   */
  note(note: Note): void
}

/** What the attempt stands on: a lease that may end, or a transaction. */
export interface Ground {
  readonly grant: Grant
  /** What the attempt has told about itself so far. */
  noted?: Note
  signal(): AbortSignal
  /** Throws when the lease is over by the holder's own clock. */
  check(): void
}

class OwnAttempt implements Attempt {
  declare readonly signal: AbortSignal
  declare readonly effectKey: string
  readonly fence: Fence
  readonly number: number
  pointer: Pointer | null
  readonly derive: Attempt['derive']
  readonly attach: Attempt['attach']
  readonly note: Attempt['note']
  readonly #ground: Ground

  constructor(ground: Ground, attach: (pointer: Pointer) => Promise<void>) {
    const { grant } = ground
    this.#ground = ground
    this.fence = grant.fence
    this.number = grant.attempt
    this.pointer = grant.pointer
    this.derive = (name) => {
      ground.check()
      return effectKeyOf(grant.id, grant.incarnation, name)
    }
    this.attach = async (next) => {
      ground.check()
      const checked = checkPointer(next)
      await attach(checked)
      this.pointer = checked
    }
    this.note = (note) => {
      ground.noted = { ...ground.noted, ...checkNote(note) }
    }
    // Own and enumerable, so that a copy by `{ ...attempt }` has them; made only when they are read. A descriptor that
    // all attempts share costs a tenth of a getter in a literal.
    Object.defineProperty(this, 'signal', OwnAttempt.#signal)
    Object.defineProperty(this, 'effectKey', OwnAttempt.#effectKey)
  }

  static readonly #signal = {
    enumerable: true,
    get(this: OwnAttempt) {
      return this.#ground.signal()
    },
  }

  static readonly #effectKey = {
    enumerable: true,
    get(this: OwnAttempt) {
      const { grant, check } = this.#ground
      check()
      return effectKeyOf(grant.id, grant.incarnation)
    },
  }
}

export function createAttempt(ground: Ground, attach: (pointer: Pointer) => Promise<void>): Attempt {
  return new OwnAttempt(ground, attach)
}

/** What a settle says of an attempt beside its outcome; most say nothing. */
export function told({ noted }: Ground): { readonly note?: Note } {
  return noted === undefined ? {} : { note: noted }
}

export function leaseOver(operation: string): OnceError<'lease_over'> {
  return new OnceError('lease_over', `The lease of ${operation} is over.`)
}

export function leaseLost(operation: string, state: string): OnceError<'lease_lost'> {
  return new OnceError('lease_lost', `Another owner took over ${operation} (now ${state}).`, { details: { state } })
}
