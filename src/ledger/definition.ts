import type { Identity } from './core/identity.ts'
import type { Kept, OnAbandoned, Pointer } from './core/record.ts'
import type { Classify } from './core/verdict.ts'

/** What kind of effect is it? Required, because no default is right for everyone. */
export type EffectKind = 'transaction' | 'repeatable' | 'external'

/** What a twin does while the first attempt runs: wait, get a conflict at once, or get the place of the status. */
export type WhileRunning = { readonly waitMs: number } | 'conflict' | 'accept'

export type Keep = Exclude<Kept, 'not_stored'>

/** Asked before every replay, with the caller of now: access may have been lost since. */
export interface ReplayRequest<I> {
  readonly identity: Identity
  readonly input: I
  readonly pointer: Pointer | null
  /** Whatever the call was given as `as`: usually the authenticated user. */
  readonly as: unknown
}

interface Common<I> {
  /** Part of the identity: changing it forgets every record. */
  readonly name: string
  readonly retainMs?: number
  /** Retention counts from settling, or, as a content guard's window, from the claim. */
  readonly retainFrom?: 'settled' | 'claimed'
  /** After retention a key is new again, or refused for `refuseMs`. */
  readonly afterExpiry?: 'new' | 'refuse'
  readonly refuseMs?: number
  /** Which part of the input makes it the same command. The whole input, when left out. */
  readonly fingerprint?: (input: I) => unknown
  /** Raise it when `fingerprint` changes; give the old form under its number in `shapes`. */
  readonly shape?: number
  readonly shapes?: Readonly<Record<number, (input: I) => unknown>>
  /**
   * A record of a shape that is not in `shapes` cannot be compared: replayed and reported, or refused as a reused key.
   */
  readonly unverified?: 'replay' | 'refuse'
  readonly whileRunning?: WhileRunning
  readonly maxOutcomeBytes?: number
  readonly authorize?: (request: ReplayRequest<I>) => boolean | Promise<boolean>
  /** Off when left out: how often one caller may repeat one key. */
  readonly perKeyLimit?: { readonly attempts: number; readonly perMs: number }
}

/**
 * How much of the result is kept. `response` keeps plain data: JSON, dates, bytes, big integers, maps, sets, and what has
 * a `toJSON`; of anything else only that it succeeded, reported as `outcome_not_stored`. Sensitive results are never
 * stored, and every replay is authorised.
 */
export type Keeping<I> =
  | { readonly keep?: 'response'; readonly sensitive?: false }
  | {
      readonly keep: 'pointer'
      /** Where the result lives; what `attach` named, when left out. */
      // oxlint-disable-next-line typescript/no-explicit-any -- the value's type belongs to each call, not to the definition.
      readonly pointer?: (value: any) => Pointer
      readonly rebuild: (pointer: Pointer, request: ReplayRequest<I>) => unknown
      readonly sensitive?: boolean
    }
  | { readonly keep: 'outcome'; readonly sensitive?: boolean }

export type TransactionDefinition<I> = Common<I> & Keeping<I> & { readonly effect: 'transaction' }

interface Leased {
  readonly leaseMs?: number
  /** The longest that the effect may take; no heartbeat is sent past it. */
  readonly maxRunMs?: number
  /** How long an unknown outcome waits to be resolved. */
  readonly unknownMs?: number
  /** Overrides what the end of a lease means for this kind of effect. */
  readonly onAbandoned?: OnAbandoned
  /** Determines whether an effect of unknown outcome happened. */
  readonly probe?: (identity: Identity, attempt: ProbedAttempt) => Promise<ProbeAnswer>
  /**
   * Which thrown errors prove that nothing happened; none, when left out. `singleCall` is for effects that make exactly
   * one outgoing call.
   */
  readonly classify?: Classify
}

export type LeasedDefinition<I> = Common<I> & Keeping<I> & Leased & { readonly effect: 'repeatable' | 'external' }

// oxlint-disable-next-line typescript/no-explicit-any -- a definition without an input type accepts any input.
export type AnyDefinition = TransactionDefinition<any> | LeasedDefinition<any>

/** What a probe is given to find the effect of the attempt. */
export interface ProbedAttempt {
  readonly attempt: number
  readonly effectKey: string
  derive(name: string): string
  readonly pointer: Pointer | null
  /** By the store's clock. */
  readonly claimedAt: number
  /** How often it was asked before. */
  readonly probes: number
  /** Asking means calling the other system again: counted with the calls of the attempts. */
  calls(count: number): void
}

export type ProbeAnswer =
  | { readonly answer: 'happened'; readonly value: unknown }
  | { readonly answer: 'failed'; readonly error: unknown }
  /** It did not happen, and cannot happen any more. */
  | { readonly answer: 'prevented' }
  /** The provider knows nothing of it: counts as prevented only after the effect's longest duration. */
  | { readonly answer: 'not_found' }
  | { readonly answer: 'cannot_tell' }

export const happened = (value: unknown): ProbeAnswer => ({ answer: 'happened', value })
export const prevented: ProbeAnswer = { answer: 'prevented' }
export const notFound: ProbeAnswer = { answer: 'not_found' }
export const cannotTell: ProbeAnswer = { answer: 'cannot_tell' }
