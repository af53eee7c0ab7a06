import type { Awaitable } from '../runtime/runtime.ts'
import type { Around, Context } from './context.ts'
import { tellTime } from './context.ts'
import { OnceError } from './core/errors.ts'
import type { Pointer } from './core/record.ts'
import type { Grant, HolderDecision, Settlement } from './core/request.ts'
import { boundedRetryMs, retryAfterMs } from './core/retry.ts'
import { runningUnder, settledAs } from './core/transition-parts.ts'
import { isVerdict, provesNotDone, readable, released } from './core/verdict.ts'
import type { Declared } from './declared.ts'
import type { EffectContext } from './effect-context.ts'
import { createEffectContext, leaseLost, noteOf } from './effect-context.ts'
import type { Flight, Landing } from './flight.ts'
import type { Ended, Granted, SettleWord } from './granted.ts'
import { createPendingEffect } from './granted.ts'
import type { HeldLease } from './lease.ts'
import type { Packed, Result } from './outcome.ts'
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
  sentAt: number,
): Awaitable<Granted<EffectContext> | Landing> {
  // 1. The lease is kept alive while the effect runs.
  const lease = context.heart.hold(op, grant, sentAt, () => context.flights.leave(flight))
  const given = createEffectContext(lease, (pointer) => attach(context, lease, pointer))
  // 2. A claim that took longer than its lease, or a pause right after it: nothing was begun, and nothing shall be.
  try {
    lease.check()
  } catch (over) {
    given.note({ calls: 0 })
    return settleLease(context, op, lease, given, { kind: 'not_done', error: over, retryAfterMs: 0 })
  }
  return new GrantedLease(context, op, flight, lease, given)
}

class GrantedLease implements Granted<EffectContext> {
  declare readonly kind: 'granted'
  declare readonly context: EffectContext
  declare private readonly ledger: Context
  declare private readonly op: Declared
  declare private readonly flight: Flight
  declare private readonly lease: HeldLease
  declare private span: Span | null
  /** Where only the time of the effect is wanted. */
  declare private beganMs: number | null
  declare private settled: Awaitable<Execution<unknown>> | null

  constructor(ledger: Context, op: Declared, flight: Flight, lease: HeldLease, context: EffectContext) {
    this.kind = 'granted'
    this.context = context
    this.ledger = ledger
    this.op = op
    this.flight = flight
    this.lease = lease
    this.span = null
    this.beganMs = null
    this.settled = null
  }

  get command(): Grant {
    return this.lease.grant
  }

  start(): Promise<void> {
    return startLease(this.ledger, this.op, this.lease)
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
    this.span ??= openSpan(around, this.lease.grant)
    return this.span.inside(work)
  }

  settle(ended: Ended): Awaitable<Execution<unknown>> {
    if (this.settled === null && this.beganMs !== null) tellTime(this.ledger, 'effect', this.command, this.beganMs)
    this.settled ??= this.span === null ? this.write(ended) : this.span.close(ended).then((how) => this.write(how))
    return this.settled
  }

  async abandon(reason: unknown): Promise<void> {
    await this.settle({ thrown: released(reason) })
  }

  /** 4. The outcome. */
  private write(how: Ended): Awaitable<Execution<unknown>> {
    const word: Word =
      'value' in how
        ? { kind: 'succeeded', value: how.value, encoded: how.encoded, pointer: null }
        : wordOf(this.op, readable(how.thrown))
    const landing = settleLease(this.ledger, this.op, this.lease, this.context, word)
    return landing instanceof Promise ? landing.then((given) => this.land(given)) : this.land(landing)
  }

  /** Where the store must decide in time, what ran here answers for a store that does not. */
  private keep({ packed }: Extract<Landing, { kind: 'executed' }>, since: number): void {
    const { grant } = this.lease
    const { outcome, pointer } = packed
    // By the time of its claim, so that it never lasts longer than the record.
    const record = settledAs('succeeded', runningUnder(grant), { outcome, pointer, now: grant.claimedAt })
    this.ledger.cache.keep(record, grant.claimedAt, since)
  }

  private land(landing: Landing): Awaitable<Execution<unknown>> {
    if (landing.kind === 'executed' && this.flight.keptSince !== null) this.keep(landing, this.flight.keptSince)
    this.ledger.flights.land(this.flight, landing)
    return present(this.ledger, this.op, this.flight.command, landing, true)
  }
}

/** Turns a reservation into a running attempt. */
export async function startLease({ requests }: Context, { leaseMs }: Declared, lease: HeldLease): Promise<void> {
  const { id, claimId, fence, identity } = lease.grant
  lease.check()
  const { decision } = await requests.apply({ kind: 'start', id, claimId, fence, leaseMs })
  if (decision.kind === 'lease_lost') throw leaseLost(identity.operation, decision.state)
  // The answer may have come too late: another holder may have the lease already, and nothing must begin.
  lease.check()
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
function settleLease(
  context: Context,
  op: Declared,
  lease: HeldLease,
  given: EffectContext,
  word: Word,
): Awaitable<Landing> {
  if (word.kind === 'released') return giveBack(context, lease, word.error)
  const { to, pointer } = settlementOf(context, op, lease, word)
  const decision = context.settler.settle(lease, to, pointer)
  const written = { to, pointer: pointer ?? given.pointer }
  return decision instanceof Promise
    ? decision.then((known) => landingOf(op, lease, word, written, known))
    : landingOf(op, lease, word, written, decision)
}

function landingOf(
  op: Declared,
  { grant }: HeldLease,
  word: Exclude<Word, { kind: 'released' }>,
  { to, pointer }: { readonly to: Settlement; readonly pointer: Pointer | null },
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

async function giveBack(context: Context, lease: HeldLease, cause: unknown): Promise<Landing> {
  await context.settler.release(lease.grant)
  lease.letGo()
  const text = `${lease.grant.identity.operation} gave its claim back.`
  return { kind: 'released', error: new OnceError('not_done', text, { cause, retryAfterMs: 0 }) }
}

/** What is written for the end of an attempt. */
export function settlementOf(
  context: Context,
  op: Declared,
  lease: HeldLease,
  word: Exclude<Word, { kind: 'released' }>,
): { readonly to: Settlement; readonly pointer: Pointer | null } {
  const note = noteOf(lease)
  switch (word.kind) {
    case 'succeeded': {
      const { outcome, pointer } = packReported(context, op, lease.grant, word)
      const named = word.pointer === null ? pointer : checkPointer(word.pointer)
      return { to: { state: 'succeeded', outcome, ...note }, pointer: named }
    }
    case 'failed':
      return { to: { state: 'failed_terminal', outcome: packFinal(op, word), ...note }, pointer: null }
    case 'not_done': {
      const later = boundedRetryMs(word.retryAfterMs) ?? retryAfterMs(lease.grant.attempt, context.runtime.random())
      const outcome = packFailure(word.error)
      return { to: { state: 'failed_retryable', outcome, retryAfterMs: later, ...note }, pointer: null }
    }
    case 'unknown':
      return { to: { state: 'unknown', reason: packFailure(word.error).data, ...note }, pointer: null }
  }
}

/** A result that cannot be kept is reported; its record says all the same that the effect happened. */
export function packReported({ events }: Context, op: Declared, { identity }: Grant, ended: Result): Packed {
  const packed = packValue(op, ended)
  if (packed.problem !== null) events.emit({ kind: 'outcome_not_stored', identity, why: packed.problem })
  return packed
}

export async function attach(context: Context, lease: HeldLease, pointer: Pointer): Promise<void> {
  const { id, claimId, fence, incarnation, identity } = lease.grant
  const { decision } = await context.requests.apply({ kind: 'attach', id, claimId, fence, incarnation, pointer })
  if (decision.kind === 'lease_lost') throw leaseLost(identity.operation, decision.state)
}
