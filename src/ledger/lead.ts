import type { Awaitable } from '../runtime/runtime.ts'
import type { Around, Context } from './context.ts'
import { reportTime } from './context.ts'
import { isOnceError, OnceError } from './core/errors.ts'
import { limits } from './core/limits.ts'
import type { ClaimDecision, ClaimRequest, Grant } from './core/request.ts'
import { transition } from './core/transition.ts'
import type { Command, Declared } from './declared.ts'
import { grantLease } from './effect.ts'
import type { EffectContext } from './effect-context.ts'
import type { Flight, Landing } from './flight.ts'
import { decideRuns } from './flight.ts'
import type { Granted } from './granted.ts'
import type { Change } from './join.ts'
import { refusal } from './refusal.ts'
import type { AppliedDecision } from './store/port.ts'

type Led = Granted<EffectContext> | Landing

/** One claim under a lease, until it is granted or answered. It may have to be sent several times. */
class Lead {
  declare readonly context: Context
  declare readonly op: Declared
  declare readonly flight: Flight
  declare readonly request: ClaimRequest
  declare readonly deadline: number
  /** When the claim was sent, by the monotonic clock and by the clock of leases. */
  declare sentAt: number
  declare heldFrom: number
  declare waited: boolean
  declare probed: boolean

  constructor(context: Context, op: Declared, flight: Flight, request: ClaimRequest, deadline: number) {
    this.context = context
    this.op = op
    this.flight = flight
    this.request = request
    this.deadline = deadline
    this.sentAt = 0
    this.heldFrom = 0
    this.waited = false
    this.probed = false
  }
}

/** Claims under a lease, and waits for a running twin as the operation's policy says. */
export function leadLeased(context: Context, op: Declared, flight: Flight, reserve: boolean): Awaitable<Led> {
  const { command } = flight
  const waitMs = typeof op.whileRunning === 'string' ? 0 : op.whileRunning.waitMs
  const request = new Claiming(op, command, context.runtime.newId(), !reserve, waitMs > 0)
  const lead = new Lead(context, op, flight, request, context.runtime.monotonicMs() + waitMs)
  if (context.cache.get(command.id) === null) return claimUnder(lead)
  return readAgain(context, op, command).then((hot) => hot ?? claimUnder(lead))
}

function claimUnder(lead: Lead): Awaitable<Led> {
  lead.sentAt = lead.context.runtime.monotonicMs()
  lead.heldFrom = lead.context.heart.nowMs()
  const applied = sendClaim(lead.context, lead.request)
  return applied instanceof Promise ? applied.then((given) => judged(lead, given)) : judged(lead, applied)
}

/** What the store decided: a grant, an answer, or something to wait for before the claim is sent again. */
function judged(lead: Lead, { decision, record, now }: AppliedDecision<ClaimDecision>): Awaitable<Led> {
  const { context, op, flight } = lead
  const { command } = flight
  noteClaim(context, command, decision)
  switch (decision.kind) {
    case 'first_attempt':
    case 'reclaimed':
      if (flight.abandoned) return givenBack(context, decision.lease)
      decideRuns(flight, true)
      return grantLease(context, op, flight, decision.lease, lead.heldFrom)
    case 'replay_success':
    case 'replay_failure':
      return decidedBy(context, op, command, { record, now, askedAt: lead.sentAt }, lead.waited) ?? claimUnder(lead)
    case 'in_progress':
      decideRuns(flight, false)
      if (!lead.request.wait) return refusal(context, command, decision, record)
      return context.joiners.settled(command.id, lead.deadline).then((change) => {
        if (change === null) return refusal(context, command, decision, record)
        lead.waited = true
        return decidedBy(context, op, command, change, true) ?? claimUnder(lead)
      })
    case 'outcome_unknown':
      decideRuns(flight, false)
      // The probe is asked before an operator is, as long as the caller is ready to wait.
      if (lead.probed) return refusal(context, command, decision, record)
      lead.probed = true
      return askInTime(lead).then((known) => (known ? claimUnder(lead) : refusal(context, command, decision, record)))
    default:
      return refusal(context, command, decision, record)
  }
}

/** The probe continues when the caller's time is up: its answer serves the next caller. */
async function askInTime({ context, op, flight, deadline }: Lead): Promise<boolean> {
  const { runtime, prober } = context
  const leftMs = deadline - runtime.monotonicMs()
  if (leftMs <= 0 || op.probe === undefined) return false
  const late = Promise.withResolvers<false>()
  const timer = runtime.setTimer(leftMs, () => late.resolve(false), false)
  const answer = prober.ask(flight.command.id, op)
  answer.catch(() => {})
  try {
    return await Promise.race([answer, late.promise])
  } finally {
    timer.cancel()
  }
}

/** A stale entry of the cache was settled a moment ago, so it probably still is: one read instead of a claim. */
export async function readAgain(context: Context, op: Declared, command: Command): Promise<Landing | null> {
  const hot = context.cache.get(command.id)
  if (hot === null) return null
  const askedAt = context.runtime.monotonicMs()
  const { records, now } = await context.store.claims.read([command.id], { timeoutMs: limits.storeCallMs })
  const record = records[0] ?? null
  const same = record !== null && record.fence === hot.record.fence && record.state === hot.record.state
  const landing = same ? decidedBy(context, op, command, { record, now, askedAt }, false) : null
  if (landing === null) context.cache.drop([command.id])
  return landing
}

/** A class for the reason of commands. */
export class Claiming implements ClaimRequest {
  declare readonly kind: 'claim'
  declare readonly id: ClaimRequest['id']
  declare readonly identity: ClaimRequest['identity']
  declare readonly claimId: string
  declare readonly fingerprints: ClaimRequest['fingerprints']
  declare readonly refuseUnverified: boolean
  declare readonly leaseMs: number
  declare readonly start: boolean
  declare readonly wait: boolean
  declare readonly policy: ClaimRequest['policy']

  constructor(op: Declared, { id, identity, fingerprints }: Command, claimId: string, start: boolean, wait: boolean) {
    this.kind = 'claim'
    this.id = id
    this.identity = identity
    this.claimId = claimId
    this.fingerprints = fingerprints
    this.refuseUnverified = op.refuseUnverified
    this.leaseMs = op.leaseMs
    this.start = start
    this.wait = wait
    this.policy = op.policy
  }
}

/** A claim whose answer never came may have been granted. Its effect never began, so it is given back. */
export function sendClaim(context: Context, request: ClaimRequest): Awaitable<AppliedDecision<ClaimDecision>> {
  const { requests, around, settler } = context
  const applied = around === null ? requests.apply(request) : observedClaim(context, around, request)
  if (!(applied instanceof Promise)) return applied
  return applied.catch((error: unknown) => {
    const [fingerprint] = request.fingerprints
    if (isOnceError(error) && error.applied === 'maybe') void settler.release({ ...request, fingerprint })
    throw error
  })
}

function observedClaim(
  context: Context,
  around: Around,
  request: ClaimRequest,
): Awaitable<AppliedDecision<ClaimDecision>> {
  const { requests, runtime } = context
  if (around.took === undefined) return around('claim', request, async () => requests.apply(request))
  const sinceMs = runtime.monotonicMs()
  const took = () => reportTime(context, 'claim', request, sinceMs)
  let applied: Awaitable<AppliedDecision<ClaimDecision>>
  try {
    applied = requests.apply(request)
  } catch (error) {
    took()
    throw error
  }
  if (applied instanceof Promise) applied.then(took, took)
  else took()
  return applied
}

/** Counts what was granted. Everything else is counted when its caller is answered: it may claim more than once. */
export function noteClaim(
  context: Context,
  command: Command,
  decision: { kind: string; verified?: boolean; lease?: Grant; expired?: true },
): void {
  const { identity } = command
  if (decision.verified === false) context.events.emit({ kind: 'fingerprint_unverified', identity })
  if (decision.lease === undefined) return
  const { attempt, fence } = decision.lease
  context.tally.count(command.id, identity, 'claims')
  if (!context.events.isHeard) return
  const expired = decision.expired === true
  context.events.emit({ kind: 'claimed', identity, attempt, fence, reclaimed: decision.kind === 'reclaimed', expired })
}

/**
 * What a record means to a caller that waited for it, or saw it settled. A joiner shares the fate of the attempt that it
 * joined, also a retryable failure, and starts none itself; null sends it to claim again, because the lease lapsed or was
 * given back, and then one of them wins.
 */
export function decidedBy(
  context: Context,
  op: Declared,
  command: Command,
  { record, now, askedAt }: Change,
  waited: boolean,
): Landing | null {
  if (record === null || record.state === 'vacant') return null
  if (record.state === 'in_progress' || (record.state === 'failed_retryable' && record.lapsed)) return null
  if (record.state === 'failed_retryable') {
    const retry = Math.max(0, record.retryAt - now)
    return refusal(
      context,
      command,
      { kind: 'retry_later', retryAt: record.retryAt, retryAfterMs: retry, verified: true },
      record,
    )
  }
  // The pure machine decides on the copy that was read; nothing is written.
  const request = new Claiming(op, command, '', true, false)
  const { decision } = transition(record, request, { now, fence: record.fence })
  switch (decision.kind) {
    case 'replay_success':
    case 'replay_failure':
      if (record.state === 'unknown') return null
      // What was read inside an open transaction may still be undone: it must not be cached.
      if (askedAt !== null) context.cache.put(record, now, askedAt)
      return { kind: 'settled', record, waited, cached: null }
    case 'first_attempt':
    case 'reclaimed':
      return null
    default:
      return refusal(context, command, decision, record)
  }
}

function givenBack(context: Context, grant: Grant): Landing {
  void context.settler.release(grant)
  const error = new OnceError('not_done', 'The caller gave up before the effect began.', { retryAfterMs: 0 })
  // Callers that joined in this very moment decide again.
  return { kind: 'released', error }
}
