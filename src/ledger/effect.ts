import { AsyncLocalStorage } from 'node:async_hooks'
import type { Around, Context } from './context.ts'
import { OnceError } from './core/errors.ts'
import type { Pointer } from './core/record.ts'
import type { Grant, Settlement } from './core/request.ts'
import { boundedRetryMs, retryAfterMs } from './core/retry.ts'
import { isVerdict, notDone, provesNotDone, readable, released } from './core/verdict.ts'
import type { Declared } from './declared.ts'
import type { EffectContext } from './effect-context.ts'
import { createEffectContext, leaseLost, noteOf } from './effect-context.ts'
import type { Flight, Landing } from './flight.ts'
import type { Ended, Granted } from './granted.ts'
import type { HeldLease } from './lease.ts'
import type { Packed } from './outcome.ts'
import { packFailure, packFinal, packValue } from './outcome.ts'
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
): Granted<EffectContext> | Promise<Landing> {
  // 1. The lease is kept alive while the effect runs.
  const lease = context.heart.hold(op, grant, sentAt, () => context.flights.leave(flight))
  const given = createEffectContext(lease, (pointer) => attach(context, lease, pointer))
  // 2. A claim that took longer than its lease, or a pause right after it: nothing was begun, and nothing shall be.
  try {
    lease.check()
  } catch (over) {
    given.note({ calls: 0 })
    return settleThrown(context, op, lease, notDone(over, { retryAfterMs: 0 }))
  }
  // 3. The effect. From here to the settle a crash leaves the record in progress: the policy decides then.
  const span = context.around === null ? null : openSpan(context.around, grant)
  let settled: Promise<Execution<unknown>> | null = null
  const settle = (ended: Ended) => (settled ??= settleOnce(span === null ? ended : span.close(ended)))
  // 4. The outcome.
  async function settleOnce(ended: Ended | Promise<Ended>): Promise<Execution<unknown>> {
    const how = ended instanceof Promise ? await ended : ended
    const landing = await ('value' in how
      ? settleValue(context, op, lease, given, how.value)
      : settleThrown(context, op, lease, readable(how.thrown)))
    context.flights.land(flight, landing)
    return present(context, op, flight.command, landing, true)
  }
  return {
    kind: 'granted',
    context: given,
    start: () => startLease(context, op, lease),
    inside: span === null ? atOnce : span.inside,
    settle,
    abandon: async (reason) => void (await settle({ thrown: released(reason) })),
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

const atOnce = <T>(work: () => T): T => work()

/** What is put around the effect: its asynchronous context is found while the effect runs. */
function openSpan(around: Around, grant: Grant) {
  const ended = Promise.withResolvers<unknown>()
  const entered = { inside: atOnce }
  const over = around('effect', grant, () => {
    entered.inside = AsyncLocalStorage.snapshot()
    return ended.promise
  }).then(
    (value): Ended => ({ value }),
    (thrown: unknown): Ended => ({ thrown }),
  )
  return {
    inside: <T>(work: () => T): T => entered.inside(work),
    close(how: Ended): Promise<Ended> {
      if ('value' in how) ended.resolve(how.value)
      else ended.reject(how.thrown)
      return over
    },
  }
}

async function settleValue(
  context: Context,
  op: Declared,
  lease: HeldLease,
  given: EffectContext,
  value: unknown,
): Promise<Landing> {
  const { grant } = lease
  const packed = packValue(op, value)
  if (packed.problem !== null) {
    context.events.emit({ kind: 'outcome_not_stored', identity: grant.identity, why: packed.problem })
  }
  const to: Settlement = { state: 'succeeded', outcome: packed.outcome, ...noteOf(lease) }
  const pointer = packed.pointer ?? given.pointer
  const decision = await context.settler.settle(grant, to, packed.pointer, lease.letGo)
  if (decision?.kind === 'lease_lost')
    return { kind: 'refused', error: leaseLost(grant.identity.operation, decision.state) }
  return { kind: 'executed', value, packed: { ...packed, pointer } }
}

/** The effect table: what a thrown error means, for each kind of effect. */
async function settleThrown(context: Context, op: Declared, lease: HeldLease, thrown: unknown): Promise<Landing> {
  const { grant } = lease
  const error = isVerdict(thrown) ? thrown.error : thrown
  if (isVerdict(thrown) && thrown.verdict === 'released') return giveBack(context, lease, error)
  const outcome = isVerdict(thrown) && thrown.verdict === 'final' ? packFinal(op, thrown) : packFailure(error)
  const to = { ...settlementOf(context, op, grant, thrown, outcome), ...noteOf(lease) }
  const decision = await context.settler.settle(grant, to, null, lease.letGo)
  if (decision?.kind === 'lease_lost') {
    const lost = leaseLost(op.name, decision.state)
    return {
      kind: 'refused',
      error: new OnceError('lease_lost', lost.message, { cause: error, details: lost.details }),
    }
  }
  switch (to.state) {
    case 'failed_terminal':
      return { kind: 'failed', data: outcome.data, cause: error }
    case 'failed_retryable': {
      const text = `${op.name} failed before its effect.`
      return {
        kind: 'refused',
        error: new OnceError('not_done', text, { cause: error, retryAfterMs: to.retryAfterMs }),
      }
    }
    default: {
      const text = `${op.name} threw, and its effect may have happened.`
      const details = { id: grant.id, attempts: grant.attempt }
      return { kind: 'refused', error: new OnceError('outcome_unknown', text, { cause: error, details }) }
    }
  }
}

async function giveBack(context: Context, lease: HeldLease, cause: unknown): Promise<Landing> {
  await context.settler.release(lease.grant)
  lease.letGo()
  const text = `${lease.grant.identity.operation} gave its claim back.`
  return { kind: 'released', error: new OnceError('not_done', text, { cause, retryAfterMs: 0 }) }
}

function settlementOf(
  context: Context,
  op: Declared,
  grant: Grant,
  thrown: unknown,
  outcome: Packed['outcome'],
): Settlement {
  if (isVerdict(thrown) && thrown.verdict === 'final') return { state: 'failed_terminal', outcome }
  const proven = isVerdict(thrown) || op.effect === 'repeatable' || provesNotDone(op.classify, thrown)
  if (!proven) return { state: 'unknown', reason: outcome.data }
  const asked = isVerdict(thrown) ? boundedRetryMs(thrown.retryAfterMs) : null
  return {
    state: 'failed_retryable',
    outcome,
    retryAfterMs: asked ?? retryAfterMs(grant.attempt, context.runtime.random()),
  }
}

export async function attach(context: Context, lease: HeldLease, pointer: Pointer): Promise<void> {
  const { id, claimId, fence, identity } = lease.grant
  const { decision } = await context.requests.apply({ kind: 'attach', id, claimId, fence, pointer })
  if (decision.kind === 'lease_lost') throw leaseLost(identity.operation, decision.state)
}
