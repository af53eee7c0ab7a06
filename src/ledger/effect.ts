import type { Awaitable } from '../runtime/runtime.ts'
import type { Around, Context } from './context.ts'
import { reportTime } from './context.ts'
import { OnceError } from './core/errors.ts'
import type { Pointer } from './core/record.ts'
import type { Grant, HolderDecision, Settlement } from './core/request.ts'
import { boundedRetryMs, retryAfterMs } from './core/retry.ts'
import { runningUnder, settledAs } from './core/transition-parts.ts'
import { isVerdict, provesNotDone, readable, released } from './core/verdict.ts'
import type { Declared } from './declared.ts'
import type { EffectContext } from './effect-context.ts'
import { Attempt, leaseLost, noteOf, OwnContext } from './effect-context.ts'
import type { Flight, Landing } from './flight.ts'
import type { Ended, Granted, SettleWord } from './granted.ts'
import { createPendingEffect } from './granted.ts'
import { checkPointer, packFailure, packFinal, packValue } from './outcome.ts'
import type { Execution } from './present.ts'
import { present } from './present.ts'

/** The effect of any operation. The public types bind it to the context of its effect kind. */
export type Effect = (context: never) => unknown

/** A granted lease in the hands of its caller: kept alive until it is settled. */
export function grantLease(
  context: Context,
  op: Declared,
  flight: Flight,
  grant: Grant,
  sentAtMs: number,
): Awaitable<Granted<EffectContext> | Landing> {
  // 1. The lease is kept alive while the effect runs.
  const attempt = new GrantedLease(context, op, flight, grant, sentAtMs)
  const over = attempt.lease.end()
  if (over === null) return attempt
  // 2. A claim that took longer than its lease, or a pause right after it: nothing was begun, and nothing shall be.
  attempt.context.note({ calls: 0 })
  return settleLease(context, attempt, { kind: 'not_done', error: over, retryAfterMs: 0 })
}

class GrantedLease extends Attempt implements Granted<EffectContext> {
  declare readonly kind: 'granted'
  declare readonly context: EffectContext
  declare private readonly ledger: Context
  declare private readonly flight: Flight
  declare private span: Span | null
  /** Where only the time of the effect is wanted. */
  declare private beganMs: number | null
  declare private settled: Awaitable<Execution<unknown>> | null

  constructor(ledger: Context, op: Declared, flight: Flight, grant: Grant, sentAtMs: number) {
    super(ledger.heart, op, grant, sentAtMs)
    this.kind = 'granted'
    this.context = new OwnContext(this, (pointer) => attach(ledger, grant, pointer))
    this.ledger = ledger
    this.flight = flight
    this.span = null
    this.beganMs = null
    this.settled = null
  }

  override over(): void {
    this.ledger.flights.leave(this.flight)
  }

  get command(): Grant {
    return this.grant
  }

  start(): Promise<void> {
    return startLease(this.ledger, this)
  }

  /**
   * 3. The effect. From here to the settle a crash leaves the record in progress: the policy decides then. Its span begins
   * here, and not at the grant: a reserved claim waits for its turn, and that is no part of its effect.
   */
  inside<T>(work: () => T): T {
    const { around } = this.ledger
    if (around === null) return work()
    if (around.took !== undefined) {
      this.beganMs ??= this.ledger.runtime.monotonicMs()
      return work()
    }
    this.span ??= openSpan(around, this.grant)
    return this.span.inside(work)
  }

  /** 4. The outcome. */
  settle(ended: Ended): Awaitable<Execution<unknown>> {
    if (this.settled !== null) return this.settled
    if (this.beganMs !== null) reportTime(this.ledger, 'effect', this.grant, this.beganMs)
    this.settled = this.span === null ? this.write(ended) : this.span.close(ended).then((how) => this.write(how))
    return this.settled
  }

  async abandon(reason: unknown): Promise<void> {
    await this.settle({ thrown: released(reason) })
  }

  private write(how: Ended): Awaitable<Execution<unknown>> {
    const word: Word =
      'value' in how
        ? { kind: 'succeeded', value: how.value, encoded: how.encoded, pointer: null }
        : wordOf(this.op, readable(how.thrown))
    const landing = settleLease(this.ledger, this, word)
    return landing instanceof Promise ? landing.then((given) => this.land(given)) : this.land(landing)
  }

  private land(landing: Landing): Awaitable<Execution<unknown>> {
    if (landing.kind === 'executed' && this.flight.keptSince !== null) this.keep(landing, this.flight.keptSince)
    this.ledger.flights.land(this.flight, landing)
    if (landing.kind === 'executed') return { kind: 'executed', value: landing.value }
    return present(this.ledger, this.op, this.flight.command, landing, true)
  }

  /** Where the store must decide in time, what ran here answers for a store that does not. */
  private keep({ packed }: Extract<Landing, { kind: 'executed' }>, since: number): void {
    const { outcome, pointer } = packed
    const { claimedAt } = this.grant
    // By the time of its claim, so that it never lasts longer than the record.
    const record = settledAs('succeeded', runningUnder(this.grant), { outcome, pointer, now: claimedAt })
    this.ledger.cache.keep(record, claimedAt, since)
  }
}

/** Turns a reservation into a running attempt. */
export async function startLease({ requests }: Context, attempt: Attempt): Promise<void> {
  const { id, claimId, fence, identity } = attempt.grant
  attempt.check()
  const { decision } = await requests.apply({ kind: 'start', id, claimId, fence, leaseMs: attempt.op.leaseMs })
  if (decision.kind === 'lease_lost') throw leaseLost(identity.operation, decision.state)
  // The answer may have come too late: another holder may have the lease already, and nothing must begin.
  attempt.check()
}

interface Span {
  inside<T>(work: () => T): T
  close(how: Ended): Promise<Ended>
}

/** What is put around the effect ends before its outcome is recorded. It only observes: its own faults change nothing. */
function openSpan(around: Around, grant: Grant): Span {
  const { enter, inside, end } = createPendingEffect()
  const observe = async () => around('effect', grant, enter)
  const over = observe().then(ignore, ignore)
  const close = async (how: Ended): Promise<Ended> => {
    end(how)
    await over
    return how
  }
  return { inside, close }
}

function ignore(): void {}

type Word =
  | (SettleWord & { readonly encoded?: string | undefined })
  /** With what its retries are answered. */
  | { readonly kind: 'failed'; readonly error: unknown; readonly answer: unknown }
  | { readonly kind: 'released'; readonly error: unknown }

/** The effect table: what a thrown error means, for each kind of effect. */
function wordOf(op: Declared, thrown: unknown): Word {
  const error = isVerdict(thrown) ? thrown.error : thrown
  if (isVerdict(thrown) && thrown.verdict === 'final') return { kind: 'failed', error, answer: thrown.answer }
  if (isVerdict(thrown) && thrown.verdict === 'released') return { kind: 'released', error }
  const proven = isVerdict(thrown) || op.effect === 'repeatable' || provesNotDone(op.classify, thrown)
  if (!proven) return { kind: 'unknown', error }
  const asked = isVerdict(thrown) ? thrown.retryAfterMs : null
  return { kind: 'not_done', error, ...(asked === null ? {} : { retryAfterMs: asked }) }
}

/** Records how the effect ended. A failure to record never looks like a failed effect. */
function settleLease(context: Context, attempt: GrantedLease, word: Word): Awaitable<Landing> {
  if (word.kind === 'released') return giveBack(context, attempt, word.error)
  const { to, pointer } = settlementOf(context, attempt, word)
  const decision = context.settler.settle(attempt, to, pointer)
  const named = pointer ?? attempt.context.pointer
  return decision instanceof Promise
    ? decision.then((known) => landingOf(attempt, word, to, named, known))
    : landingOf(attempt, word, to, named, decision)
}

function landingOf(
  { op, grant }: Attempt,
  word: Exclude<Word, { kind: 'released' }>,
  to: Settlement,
  pointer: Pointer | null,
  decision: HolderDecision | null,
): Landing {
  if (to.state === 'succeeded' && decision?.kind !== 'lease_lost') {
    const value = word.kind === 'succeeded' ? word.value : undefined
    return { kind: 'executed', value, packed: { outcome: to.outcome, pointer } }
  }
  const cause = word.kind === 'succeeded' ? {} : { cause: word.error }
  if (decision?.kind === 'lease_lost') {
    const { message, details } = leaseLost(grant.identity.operation, decision.state)
    return { kind: 'refused', error: new OnceError('lease_lost', message, { ...cause, details }) }
  }
  switch (to.state) {
    case 'succeeded':
    case 'failed_terminal':
      return { kind: 'failed', data: to.outcome.data, ...cause }
    case 'failed_retryable': {
      const { retryAfterMs: later } = to
      const error = new OnceError('not_done', `${op.name} failed before its effect.`, { ...cause, retryAfterMs: later })
      return { kind: 'refused', error }
    }
    case 'unknown': {
      const details = { id: grant.id, attempts: grant.attempt }
      const text = `${op.name} threw, and its effect may have happened.`
      return { kind: 'refused', error: new OnceError('outcome_unknown', text, { ...cause, details }) }
    }
  }
}

async function giveBack(context: Context, { grant, lease }: Attempt, cause: unknown): Promise<Landing> {
  await context.settler.release(grant)
  lease.letGo()
  const text = `${grant.identity.operation} gave its claim back.`
  return { kind: 'released', error: new OnceError('not_done', text, { cause, retryAfterMs: 0 }) }
}

/** What is written for the end of an attempt. */
export function settlementOf(
  context: Context,
  attempt: Attempt,
  word: Exclude<Word, { kind: 'released' }>,
): { readonly to: Settlement; readonly pointer: Pointer | null } {
  const { op, grant } = attempt
  const note = attempt.noted === undefined ? {} : noteOf(attempt)
  switch (word.kind) {
    case 'succeeded': {
      const { outcome, pointer, problem } = packValue(op, word)
      if (problem !== null) reportNotStored(context, grant, problem)
      const named = word.pointer === null ? pointer : checkPointer(word.pointer)
      return { to: { state: 'succeeded', outcome, ...note }, pointer: named }
    }
    case 'failed':
      return { to: { state: 'failed_terminal', outcome: packFinal(op, word), ...note }, pointer: null }
    case 'not_done': {
      const later = boundedRetryMs(word.retryAfterMs) ?? retryAfterMs(grant.attempt, context.runtime.random())
      const outcome = packFailure(word.error)
      return { to: { state: 'failed_retryable', outcome, retryAfterMs: later, ...note }, pointer: null }
    }
    case 'unknown':
      return { to: { state: 'unknown', reason: packFailure(word.error).data, ...note }, pointer: null }
  }
}

/** A result that cannot be kept is reported; its record says all the same that the effect happened. */
export function reportNotStored({ events }: Context, { identity }: Grant, why: string): void {
  events.emit({ kind: 'outcome_not_stored', identity, why })
}

export async function attach(context: Context, grant: Grant, pointer: Pointer): Promise<void> {
  const { id, claimId, fence, incarnation, identity } = grant
  const { decision } = await context.requests.apply({ kind: 'attach', id, claimId, fence, incarnation, pointer })
  if (decision.kind === 'lease_lost') throw leaseLost(identity.operation, decision.state)
}
