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

/** For routes, which never change a stored response: all replays of a cached record get one value, made by this function. */
export const shareReplays = Symbol('onceonly.shareReplays')

interface Common<I> {
  /** Part of the identity: changing it forgets every record. */
  readonly name: string
  /** How long an outcome is kept and replayed, in milliseconds. @default 7 days */
  readonly retainMs?: number
  /** Retention counts from settling, or, as a content guard's window, from the claim. @default 'settled' */
  readonly retainFrom?: 'settled' | 'claimed'
  /** After retention a key is new again, or refused for `refuseMs`. @default 'new' */
  readonly afterExpiry?: 'new' | 'refuse'
  /** How long an expired key is refused, in milliseconds; only with `afterExpiry: 'refuse'`. @default `retainMs` */
  readonly refuseMs?: number
  /** Which part of the input makes it the same command. The whole input, when left out. @default the whole input */
  readonly fingerprint?: (input: I) => unknown
  /** Raise it when `fingerprint` changes; give the old form under its number in `shapes`. @default 1 */
  readonly shape?: number
  /**
   * Older forms of `fingerprint`, by their `shape`, so that retries from before a deployment are still compared.
   * @default none
   */
  readonly shapes?: Readonly<Record<number, (input: I) => unknown>>
  /**
   * A record of a shape that is not in `shapes` cannot be compared: replayed and reported, or refused as a reused key.
   * @default 'replay'
   */
  readonly unverified?: 'replay' | 'refuse'
  /**
   * What a second call gets while the first attempt runs: it waits, gets a conflict, or the place of the status.
   * @default { waitMs: 10_000 }
   */
  readonly whileRunning?: WhileRunning
  /** The largest encoded outcome that is kept, in bytes; of a larger one only that it succeeded. @default 1.5 MiB */
  readonly maxOutcomeBytes?: number
  /**
   * Whether the caller of now may see the recorded outcome; called before every replay.
   * @default every replay is allowed
   */
  readonly authorize?: (request: ReplayRequest<I>) => boolean | Promise<boolean>
  /**
   * How often one process answers one caller under one key within a time, in milliseconds. Every attempt counts, replays
   * too: a client that retries without a pause gets `too_many_attempts`, and its answer when the time is over.
   * @default off
   */
  readonly perKeyLimit?: { readonly attempts: number; readonly perMs: number }
}

/**
 * How much of the result is kept. `response` keeps plain data: JSON, dates, bytes, big integers, maps, sets, and what has
 * a `toJSON`; of anything else only that it succeeded, reported as `outcome_not_stored`. Sensitive results are never
 * stored, and every replay is authorised.
 */
export type Keeping<I> =
  | {
      /** How much of the result is kept: all of it, where it is, or only that it succeeded. @default 'response' */
      readonly keep?: 'response'
      /** The result must not be stored: only `keep: 'pointer'` or `'outcome'`, with `authorize`. @default false */
      readonly sensitive?: false
    }
  | {
      readonly keep: 'pointer'
      /** Where the result lives. @default what `attach` named */
      // oxlint-disable-next-line typescript/no-explicit-any -- the value's type belongs to each call, not to the definition.
      readonly pointer?: (value: any) => Pointer
      /** Makes the result again from the pointer, with the rights of the caller of now. */
      readonly rebuild: (pointer: Pointer, request: ReplayRequest<I>) => unknown
      readonly sensitive?: boolean
    }
  | { readonly keep: 'outcome'; readonly sensitive?: boolean }

export type TransactionDefinition<I> = Common<I> &
  Keeping<I> & {
    /** The effect commits with its record, in one transaction of the store. */
    readonly effect: 'transaction'
  }

interface Leased {
  /** How long an attempt owns its identity without a heartbeat, in milliseconds, from 500. @default 30_000 */
  readonly leaseMs?: number
  /** The longest that the effect may take; no heartbeat is sent past it. @default 15 minutes */
  readonly maxRunMs?: number
  /** How long an unknown outcome waits to be resolved. @default 30 days */
  readonly unknownMs?: number
  /**
   * Overrides what the end of a lease means for this kind of effect.
   * @default 'probe' with a `probe`, else 'rerun' for repeatable effects and 'hold' for external ones
   */
  readonly onAbandoned?: OnAbandoned
  /** Determines whether an effect of unknown outcome happened. @default none */
  readonly probe?: (identity: Identity, attempt: ProbedAttempt) => Promise<ProbeAnswer>
  /**
   * Which thrown errors prove that nothing happened; none, when left out. `singleCall` is for effects that make exactly
   * one outgoing call.
   * @default none
   */
  readonly classify?: Classify
}

export type LeasedDefinition<I> = Common<I> &
  Keeping<I> &
  Leased & {
    /** `repeatable` may run again after a crash; of an `external` one a lost outcome stays unknown until it is resolved. */
    readonly effect: 'repeatable' | 'external'
  }

// oxlint-disable-next-line typescript/no-explicit-any -- a definition without an input type accepts any input.
export type AnyDefinition = (TransactionDefinition<any> | LeasedDefinition<any>) & {
  readonly [shareReplays]?: (value: unknown) => unknown
}

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

/** The effect happened, with this result: the record is settled with it. */
export const happened = (value: unknown): ProbeAnswer => ({ answer: 'happened', value })
/** The effect did not happen and cannot happen any more: another attempt may run. */
export const prevented: ProbeAnswer = { answer: 'prevented' }
/** The provider knows nothing of the effect yet: the probe is called again later. */
export const notFound: ProbeAnswer = { answer: 'not_found' }
/** The provider gave no answer: the outcome stays unknown, and the probe is called again later. */
export const cannotTell: ProbeAnswer = { answer: 'cannot_tell' }
