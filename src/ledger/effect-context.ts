import { OnceError } from './core/errors.ts'
import type { Fence } from './core/identity.ts'
import { effectKeyOf } from './core/identity.ts'
import type { Note, Pointer } from './core/record.ts'
import type { Grant } from './core/request.ts'
import { checkNote } from './note.ts'
import { checkPointer } from './outcome.ts'
import type { OutboxMessage } from './store/outbox.ts'
import type { UniqueAnswer } from './unique.ts'

/** What every effect is given, in `run`, in routes, in the inbox and in steps. All of it are own properties. */
export interface EffectContext {
  /** Equal for every attempt of this command; pass it to the provider. */
  readonly effectKey: string
  /** Has fired when the lease ended or was lost: stop, because the outcome cannot be recorded any more. */
  readonly signal: AbortSignal
  /** Grows with every grant: a target that keeps the largest fence it saw can refuse a late writer. */
  readonly fence: Fence
  /** From 1. */
  readonly attemptNumber: number
  /** One key per provider and step, derived from the effect key. Throws once the lease is over. */
  derive(name: string): string
  /** Left by an earlier attempt, or by `attach`. */
  readonly pointer: Pointer | null
  /** Names what this attempt makes: durable, fenced, and visible to waiting callers at once. Throws once the lease is over. */
  attach(pointer: Pointer): Promise<void>
  /**
   * Facts for operators, above all how many calls of other systems this attempt began: recorded with its outcome, and
   * lost with it. A later note replaces the same fields of an earlier one.
   */
  note(note: Note): void
}

/** What an effect in the same database is given. Everything it does commits with its record, or not at all. */
export interface TransactionContext<Tx> extends EffectContext {
  readonly tx: Tx
  readonly outbox: { add(message: OutboxMessage): Promise<void> }
  /** A permanent claim on a business value, owned by this command. */
  unique(scope: string, value: string): Promise<UniqueAnswer>
}

/** What the attempt stands on: a lease that may end, or a transaction. */
export interface Ground {
  readonly grant: Grant
  /** What the attempt has noted about itself so far. */
  noted?: Note | undefined
  signal(): AbortSignal
  /** Throws when the lease is over by the holder's own clock. */
  check(): void
}

class OwnContext implements EffectContext {
  declare readonly signal: AbortSignal
  declare readonly effectKey: string
  readonly fence: Fence
  readonly attemptNumber: number
  pointer: Pointer | null
  readonly derive: EffectContext['derive']
  readonly attach: EffectContext['attach']
  readonly note: EffectContext['note']
  readonly #ground: Ground

  constructor(ground: Ground, attach: (pointer: Pointer) => Promise<void>) {
    const { id, incarnation, fence, attempt, pointer } = ground.grant
    this.#ground = ground
    this.fence = fence
    this.attemptNumber = attempt
    this.pointer = pointer
    this.derive = (name) => {
      ground.check()
      return effectKeyOf(id, incarnation, name)
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
    // Own and enumerable, so that a copy by `{ ...context }` has them; made when they are read, because most effects never
    // read them. A descriptor that all contexts share costs a tenth of a getter in a literal.
    Object.defineProperty(this, 'signal', OwnContext.#signal)
    Object.defineProperty(this, 'effectKey', OwnContext.#effectKey)
  }

  static readonly #signal = {
    enumerable: true,
    get(this: OwnContext) {
      return this.#ground.signal()
    },
  }

  static readonly #effectKey = {
    enumerable: true,
    get(this: OwnContext) {
      const { id, incarnation } = this.#ground.grant
      return effectKeyOf(id, incarnation)
    },
    /** An inbox gives its effects a key of its own. */
    set(this: OwnContext, value: string) {
      Object.defineProperty(this, 'effectKey', { value, enumerable: true })
    },
    configurable: true,
  }
}

export function createEffectContext(ground: Ground, attach: (pointer: Pointer) => Promise<void>): EffectContext {
  return new OwnContext(ground, attach)
}

/** The part of a settle that has the attempt's notes; most have none. */
export function noteOf({ noted }: Ground): { readonly note?: Note } {
  return noted === undefined ? {} : { note: noted }
}

export function leaseOver(operation: string): OnceError<'lease_over'> {
  return new OnceError('lease_over', `The lease of ${operation} is over.`)
}

export function leaseLost(operation: string, state: string): OnceError<'lease_lost'> {
  return new OnceError('lease_lost', `Another owner took over ${operation} (now ${state}).`, { details: { state } })
}
