import type { Runtime } from '../runtime/runtime.ts'
import { OnceError } from './core/errors.ts'
import type { Fence } from './core/identity.ts'
import { effectKeyOf } from './core/identity.ts'
import type { Note, Pointer } from './core/record.ts'
import type { Grant, HolderDecision } from './core/request.ts'
import type { Declared } from './declared.ts'
import type { Events } from './events.ts'
import { checkNote } from './note.ts'
import { checkPointer } from './outcome.ts'
import type { Requests } from './requests.ts'
import type { HeldLease, HeldLeases } from './store/held-leases.ts'
import { createHeldLeases } from './store/held-leases.ts'
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

/** What `run`, routes, the inbox and steps give an effect; a transaction adds its own to it. */
export class OwnContext implements EffectContext {
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

type Lost = Extract<HolderDecision, { readonly kind: 'lease_lost' }>

/** The leases of a ledger's attempts, on one timer. */
export type Heart = HeldLeases<Attempt, OnceError>

/** The signal of an effect fires within this time after its lease is over. */
const TICK_MOST_MS = 250

/** The leases of a ledger's attempts: renewed through the store, reported as events. */
export function createHeart(requests: Requests, runtime: Runtime, events: Events): Heart {
  return createHeldLeases<Attempt, Lost, OnceError>({
    runtime,
    tickMostMs: TICK_MOST_MS,
    async renew({ op: { leaseMs }, grant: { id, claimId, fence } }, withinMs) {
      const { decision } = await requests.apply({ kind: 'renew', id, claimId, fence, leaseMs }, withinMs)
      return decision.kind === 'lease_lost' ? decision : null
    },
    endOf: ({ op }, lost) => (lost === null ? leaseOver(op.name) : leaseLost(op.name, lost.state)),
    ended(attempt, _error, lost) {
      const { identity, fence } = attempt.grant
      if (lost === null) events.emit({ kind: 'lease_over', identity, fence })
      else events.emit({ kind: 'lease_lost', identity, fence, state: lost.state })
      attempt.over()
    },
  })
}

/** One attempt that holds a lease, as its holder sees it. */
export class Attempt implements Ground {
  declare readonly op: Declared
  declare readonly grant: Grant
  declare noted: Note | undefined
  declare readonly lease: HeldLease<OnceError>

  /** `sentAtMs` is by the clock of leases, before the claim was sent: the lease cannot have begun earlier at the store. */
  constructor(heart: Heart, op: Declared, grant: Grant, sentAtMs: number) {
    this.op = op
    this.grant = grant
    this.noted = undefined
    this.lease = heart.hold(this, { sentAtMs, leaseMs: op.leaseMs, mostMs: op.maxRunMs })
  }

  /** Its lease ended before it was let go. */
  over(): void {}

  signal(): AbortSignal {
    // A paused process, or machine, finds its lease over before any timer could fire.
    this.lease.end()
    return this.lease.signal()
  }

  check(): void {
    const ended = this.lease.end()
    if (ended !== null) throw ended
  }
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
