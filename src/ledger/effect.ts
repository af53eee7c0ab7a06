import type { Context } from './context.ts'
import { OnceError } from './core/errors.ts'
import type { Pointer } from './core/record.ts'
import type { Grant, Settlement } from './core/request.ts'
import { boundedRetryMs, retryAfterMs } from './core/retry.ts'
import { isVerdict, notDone, provesNotDone, readable } from './core/verdict.ts'
import type { Declared } from './declared.ts'
import { createEffectContext, leaseLost, noteOf } from './effect-context.ts'
import type { Landing } from './flight.ts'
import type { HeldLease } from './lease.ts'
import type { Packed } from './outcome.ts'
import { packFailure, packFinal, packValue } from './outcome.ts'

/** The effect of any operation. The public types bind it to the context of its effect kind. */
export type Effect = (context: never) => unknown

/** The effect of one call. */
export interface Work {
  readonly effect: Effect
  /** Its end comes from outside, once: it cannot run again, and its caller stays until then. */
  readonly handedOver: boolean
}

/** The main path: the effect under its lease, then its outcome under the same fence. */
export async function runEffect(
  context: Context,
  op: Declared,
  grant: Grant,
  sentAt: number,
  effect: Effect,
  over: () => void,
): Promise<Landing> {
  // 1. The lease is kept alive while the effect runs.
  const lease = context.heart.hold(op, grant, sentAt, over)
  const given = createEffectContext(lease, (pointer) => attach(context, lease, pointer))
  // 2. A claim that took longer than its lease, or a pause right after it: nothing was begun, and nothing shall be.
  try {
    lease.check()
  } catch (over) {
    given.note({ calls: 0 })
    return settleThrown(context, op, lease, notDone(over, { retryAfterMs: 0 }))
  }
  // 3. The effect. From here to the settle a crash leaves the record in progress: the policy decides then.
  let value: unknown
  try {
    const { around } = context
    value = await (around === null
      ? effect(given as never)
      : around('effect', grant, async () => effect(given as never)))
  } catch (thrown) {
    return settleThrown(context, op, lease, readable(thrown))
  }
  // 4. The outcome. Recording is outside of the effect's try: its failure must not look like a failed effect.
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
