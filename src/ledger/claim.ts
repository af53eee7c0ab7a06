import type { Context } from './context.ts'
import { refuseInsideTransaction, stopped } from './context.ts'
import type { Pointer } from './core/record.ts'
import type { ClaimDecision } from './core/request.ts'
import type { Command, Declared } from './declared.ts'
import { attach, settlementOf, startLease } from './effect.ts'
import type { EffectContext } from './effect-context.ts'
import { Attempt, leaseLost, OwnContext } from './effect-context.ts'
import type { SettleWord } from './granted.ts'
import { Claiming, noteClaim, sendClaim } from './lead.ts'
import { noteRefusal } from './refusal.ts'

/** A granted lease: it is renewed until you settle it, and only you can settle it. */
export interface Lease extends EffectContext {
  /** Turns a reservation into a running attempt: durable before the effect begins. Harmless on one that runs. */
  start(): Promise<void>
  /** Idempotent. Rejects with `lease_lost` when another holder owns the record by now. */
  settle(word: SettleWord, how?: HowToWrite): Promise<void>
  /** Gives it back before the effect began. It is not renewed any more, whatever the store answers. */
  release(how?: HowToWrite): Promise<void>
}

export interface HowToWrite {
  /**
   * A store that does not answer is retried for minutes, in the background, without an error for the caller: for callers that
   * will not repeat the call. The lease is kept until its outcome is written.
   */
  readonly insist?: boolean
  /** Refuses with `lease_over` once the lease is over, as `attach` does. */
  readonly whileHeld?: boolean
}

type Granted = 'first_attempt' | 'reclaimed'
export type Claimed =
  | { readonly kind: Granted; readonly lease: Lease; readonly verified: boolean }
  | (Exclude<ClaimDecision, { kind: Granted }> & Standing)

/** What stands in the way of a claim that was not granted. */
export interface Standing {
  readonly pointer: Pointer | null
  /** Since it was claimed, by the store's clock. */
  readonly ageMs: number
}

export interface ClaimOptions {
  /** Claim ahead of execution: the effect may begin only after `lease.start()`. @default false */
  readonly reserve?: boolean
  /** How long to wait for a running attempt to attach its pointer, or to end. Not at all, when left out. @default 0 */
  readonly waitMs?: number
  /**
   * The caller claims again when an attempt without a pointer is in progress: this claim is not counted as an answer.
   * @default false
   */
  readonly claimsAgain?: boolean
}

export async function claimCommand(
  context: Context,
  op: Declared,
  command: Command,
  options: ClaimOptions,
): Promise<Claimed> {
  if (context.life.stopped) throw stopped()
  refuseInsideTransaction(op.name)
  const { runtime, joiners } = context
  const { waitMs = 0, reserve = false, claimsAgain = false } = options
  const deadline = runtime.monotonicMs() + waitMs
  const claimId = runtime.newId()
  for (;;) {
    const sentAt = runtime.monotonicMs()
    const heldFrom = context.heart.nowMs()
    const request = new Claiming(op, command, claimId, !reserve, sentAt < deadline)
    const { decision, record, now } = await sendClaim(context, request)
    noteClaim(context, command, decision)
    if (decision.kind === 'first_attempt' || decision.kind === 'reclaimed') {
      const lease = leaseOf(context, new Attempt(context.heart, op, decision.lease, heldFrom))
      return { kind: decision.kind, lease, verified: decision.verified }
    }
    const settled = {
      ...decision,
      pointer: record?.pointer ?? null,
      ageMs: record === null ? 0 : now - record.claimedAt,
    }
    const waits = decision.kind === 'in_progress' && settled.pointer === null && sentAt < deadline
    if (!waits) {
      const open = decision.kind === 'in_progress' && settled.pointer === null
      if (!open || !claimsAgain) noteStanding(context, command, decision)
      return settled
    }
    // Whatever changed is decided by claiming again: so a lapsed attempt has one successor. When nothing did, the
    // deadline is past, and the last claim says how things stand now, not how they stood before the wait.
    await joiners.settled(command.id, deadline, true)
  }
}

/** A claim that was answered by what stands there is counted and reported like a call that was. */
function noteStanding(context: Context, command: Command, decision: Exclude<ClaimDecision, { kind: Granted }>): void {
  if (decision.kind !== 'replay_success' && decision.kind !== 'replay_failure')
    return noteRefusal(context, command, decision)
  const state = decision.kind === 'replay_success' ? 'succeeded' : 'failed_terminal'
  context.tally.count(command.id, command.identity, 'replays')
  context.events.emit({ kind: 'replayed', identity: command.identity, state, cached: false })
}

function leaseOf(context: Context, held: Attempt): Lease {
  const { grant } = held
  const { id, claimId, identity } = grant
  const attempt = new OwnContext(held, (pointer) => attach(context, grant, pointer))
  const own = {
    start: () => startLease(context, held),
    async settle(word: SettleWord, { insist = false, whileHeld = false }: HowToWrite = {}) {
      if (whileHeld) held.check()
      const { to, pointer } = settlementOf(context, held, word)
      const decision = insist
        ? await context.settler.settle(held, to, pointer)
        : await context.settler.write(grant, to, pointer)
      if (!insist) held.lease.letGo()
      if (decision?.kind === 'lease_lost') throw leaseLost(identity.operation, decision.state)
    },
    async release({ insist = false }: HowToWrite = {}) {
      held.lease.letGo()
      if (insist) return context.settler.release(grant)
      const { fingerprint, policy } = grant
      const { decision } = await context.requests.apply({ kind: 'release', id, identity, claimId, fingerprint, policy })
      if (decision.kind === 'lease_lost') throw leaseLost(identity.operation, decision.state)
    },
  }
  return Object.assign(attempt, own)
}
