import { OnceError } from './core/errors.ts'
import type { Fence } from './core/identity.ts'
import { effectKeyOf } from './core/identity.ts'
import type { Pointer } from './core/record.ts'
import type { Grant } from './core/request.ts'
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
}

/** What the attempt stands on: a lease that may end, or a transaction. */
export interface Ground {
  readonly grant: Grant
  signal(): AbortSignal
  /** Throws when the lease is over by the holder's own, monotonic clock. */
  check(): void
}

/**
 * What is made only when an effect asks for it. All attempts inherit these two: a literal with getters of its own has a
 * shape of its own as well, and to make one takes as long as to hash an identity.
 */
const onDemand = {
  get signal() {
    return groundOf(this).signal()
  },
  get effectKey() {
    const { grant, check } = groundOf(this)
    check()
    return effectKeyOf(grant.id, grant.incarnation)
  },
}

const GROUND = Symbol('ground')

function groundOf(attempt: object): Ground {
  return (attempt as { readonly [GROUND]: Ground })[GROUND]
}

export function createAttempt(ground: Ground, attach: (pointer: Pointer) => Promise<void>): Attempt {
  const { grant } = ground
  const attempt = Object.create(onDemand) as { -readonly [name in keyof Attempt]: Attempt[name] } & { [GROUND]: Ground }
  attempt[GROUND] = ground
  attempt.fence = grant.fence
  attempt.number = grant.attempt
  attempt.pointer = grant.pointer
  attempt.derive = (name) => {
    ground.check()
    return effectKeyOf(grant.id, grant.incarnation, name)
  }
  attempt.attach = async (next) => {
    ground.check()
    const checked = checkPointer(next)
    await attach(checked)
    attempt.pointer = checked
  }
  return attempt
}

export function leaseOver(operation: string): OnceError<'lease_over'> {
  return new OnceError('lease_over', `The lease of ${operation} is over.`)
}

export function leaseLost(operation: string, state: string): OnceError<'lease_lost'> {
  return new OnceError('lease_lost', `Another owner took over ${operation} (now ${state}).`, { details: { state } })
}
