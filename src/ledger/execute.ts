import { OnceError } from '../core/errors.ts'
import { compareFingerprints } from '../core/fingerprint.ts'
import { limits } from '../core/limits.ts'
import type { Pointer } from '../core/record.ts'
import type { ClaimRequest, Grant, Settlement } from '../core/request.ts'
import { retryAfterMs } from '../core/retry.ts'
import { transition } from '../core/transition.ts'
import { isVerdict } from '../core/verdict.ts'
import type { Attempt } from './attempt.ts'
import { createAttempt, leaseLost } from './attempt.ts'
import type { Context } from './context.ts'
import { refuseInsideTransaction, refuseWhenStopped } from './context.ts'
import type { Command, Declared } from './declared.ts'
import type { Flight, Landing } from './flight.ts'
import type { Change } from './join.ts'
import type { HeldLease } from './lease.ts'
import type { Packed } from './outcome.ts'
import { packFailure, packValue } from './outcome.ts'
import type { Execution } from './present.ts'
import { present } from './present.ts'
import { refusal } from './refusal.ts'

export type Effect = (attempt: Attempt) => unknown

export interface CallOptions {
  /** The caller gives up: before its effect began the claim is given back, afterwards the effect goes on. */
  readonly signal?: AbortSignal
  /** Who asks, as `authorize` and `rebuild` should see it. */
  readonly as?: unknown
}

/** The way of every command: answered from memory, by a twin in this process, or by leading a flight of its own. */
export async function execute(
  context: Context,
  op: Declared,
  command: Command,
  options: CallOptions,
  lead: (flight: Flight, decided: (runs: boolean) => void) => Promise<Landing>,
): Promise<Execution<unknown>> {
  refuseWhenStopped(context)
  options.signal?.throwIfAborted()
  const tooOften = context.attemptLimit.check(op, command)
  if (tooOften !== null) return { kind: 'refused', error: tooOften }
  for (;;) {
    const known = remembered(context, command)
    if (known !== null) return present(context, op, command, known, false)
    const running = context.flights.get(command.id)
    const flight = running ?? context.flights.start(command, lead)
    const leader = running === undefined
    if (!leader && differs(flight, command)) {
      const answer = await otherPayload(context, command, flight)
      if (answer !== null) return present(context, op, command, answer, false)
      continue
    }
    const landing = await landingFor(context, op, flight, leader, options.signal)
    return present(context, op, command, landing, leader)
  }
}

/** A hot key is answered from the local cache; once a second one caller reads the record again. */
function remembered(context: Context, command: Command): Landing | null {
  const entry = context.cache.get(command.id)
  if (entry === null || compareFingerprints(entry.record.fingerprint, command.fingerprints) !== 'same') return null
  return entry.fresh ? { kind: 'settled', record: entry.record, waited: false, cached: true } : null
}

function differs(flight: Flight, command: Command): boolean {
  return compareFingerprints(flight.command.fingerprints[0], command.fingerprints) === 'different'
}

/** Another payload under a key that is just being used: a conflict if it runs, else decided anew afterwards. */
async function otherPayload(context: Context, command: Command, flight: Flight): Promise<Landing | null> {
  if (await flight.runs) {
    const [recorded] = flight.command.fingerprints
    const [presented] = command.fingerprints
    return refusal(context, command, { kind: 'key_reused', recorded, presented }, null)
  }
  await flight.landed.catch(() => {})
  return null
}

const JOINED_RETRY_MS = 500

async function landingFor(
  context: Context,
  op: Declared,
  flight: Flight,
  leader: boolean,
  signal: AbortSignal | undefined,
): Promise<Landing> {
  if (leader) return untilAborted(flight, flight.landed, signal)
  const stillRunning = () =>
    refusal(
      context,
      flight.command,
      { kind: 'in_progress', attempt: 1, retryAfterMs: JOINED_RETRY_MS, verified: true },
      null,
    )
  if (typeof op.whileRunning === 'string') {
    return (await flight.runs) ? stillRunning() : untilAborted(flight, flight.landed, signal)
  }
  const { runtime, joiners, events } = context
  const { waitMs } = op.whileRunning
  const startedAt = runtime.monotonicMs()
  return joiners.counted(async () => {
    const late = Promise.withResolvers<null>()
    const timer = runtime.setTimer(waitMs, () => late.resolve(null), false)
    try {
      const landing = await untilAborted(flight, Promise.race([flight.landed, late.promise]), signal)
      if (landing === null) return stillRunning()
      const waitedMs = runtime.monotonicMs() - startedAt
      if (landing.kind === 'executed') events.emit({ kind: 'joined', identity: flight.command.identity, waitedMs })
      return landing
    } finally {
      timer.cancel()
    }
  })
}

/** A caller that hangs up leaves the flight; the flight itself is never cancelled by it. */
async function untilAborted<T>(flight: Flight, work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  flight.callers++
  if (signal === undefined) return work
  const gone = Promise.withResolvers<never>()
  const leave = () => {
    flight.callers--
    gone.reject(signal.reason)
  }
  signal.addEventListener('abort', leave, { once: true })
  try {
    return await Promise.race([work, gone.promise])
  } finally {
    signal.removeEventListener('abort', leave)
  }
}

/** Claims under a lease, and waits for a running twin as the operation's policy says. */
export async function leadLeased(
  context: Context,
  op: Declared,
  command: Command,
  effect: Effect,
  flight: Flight,
  decided: (runs: boolean) => void,
): Promise<Landing> {
  refuseInsideTransaction(op.name)
  const { runtime, batcher } = context
  const hot = await readAgain(context, op, command)
  if (hot !== null) return hot
  const waitMs = typeof op.whileRunning === 'string' ? 0 : op.whileRunning.waitMs
  const deadline = runtime.monotonicMs() + waitMs
  const claimId = runtime.newId()
  let waited = false
  let asked = false
  for (;;) {
    const sentAt = runtime.monotonicMs()
    const request = claimRequest(op, command, claimId, { start: true, wait: waitMs > 0 })
    const { decision, record, now } = await batcher.apply(request)
    noteClaim(context, command, decision)
    switch (decision.kind) {
      case 'first_attempt':
      case 'reclaimed': {
        if (flight.callers === 0) return givenBack(context, decision.lease)
        decided(true)
        return runEffect(context, op, decision.lease, sentAt, effect)
      }
      case 'in_progress': {
        const change = waitMs > 0 ? await context.joiners.settled(command.id, deadline) : null
        if (change === null) return refusal(context, command, decision, record)
        waited = true
        const landing = decidedBy(context, op, command, change, true)
        if (landing !== null) return landing
        break
      }
      case 'replay_success':
      case 'replay_failure': {
        const landing = decidedBy(context, op, command, { record, now }, waited)
        if (landing !== null) return landing
        break
      }
      case 'outcome_unknown':
        // Whoever can be asked is asked before a person is.
        if (asked || !(await context.prober.ask(command.id, op))) return refusal(context, command, decision, record)
        asked = true
        break
      default:
        return refusal(context, command, decision, record)
    }
  }
}

/** A stale entry of the cache was settled a moment ago, so it probably still is: one read instead of a claim. */
export async function readAgain(context: Context, op: Declared, command: Command): Promise<Landing | null> {
  const hot = context.cache.get(command.id)
  if (hot === null) return null
  const { records, now } = await context.store.claims.read([command.id], { timeoutMs: limits.storeCallMs })
  const record = records[0] ?? null
  const same = record !== null && record.fence === hot.record.fence && record.state === hot.record.state
  const landing = same ? decidedBy(context, op, command, { record, now }, false) : null
  if (landing === null) context.cache.drop([command.id])
  return landing
}

export function claimRequest(
  op: Declared,
  { id, identity, fingerprints }: Command,
  claimId: string,
  { start, wait }: { start: boolean; wait: boolean },
): ClaimRequest {
  return { kind: 'claim', id, identity, claimId, fingerprints, leaseMs: op.leaseMs, start, wait, policy: op.policy }
}

export function noteClaim(
  context: Context,
  command: Command,
  decision: { kind: string; verified?: boolean; lease?: Grant },
): void {
  const { identity } = command
  context.tally.count(command.id, identity, 'claims')
  if (decision.verified === false) context.events.emit({ kind: 'fingerprint_unverified', identity })
  if (decision.lease === undefined) return
  const { attempt, fence } = decision.lease
  context.events.emit({ kind: 'claimed', identity, attempt, fence, reclaimed: decision.kind === 'reclaimed' })
}

/**
 * What a record means to somebody who waited for it, or saw it settled. A joiner shares the fate of the attempt that it
 * joined, also a retryable failure, and starts none itself; null sends it to claim again, because the lease lapsed or
 * was given back, and then one of them wins.
 */
export function decidedBy(
  context: Context,
  op: Declared,
  command: Command,
  { record, now }: Change,
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
  const request = claimRequest(op, command, '', { start: true, wait: false })
  const { decision } = transition(record, request, { now, fence: record.fence })
  switch (decision.kind) {
    case 'replay_success':
    case 'replay_failure':
      if (record.state === 'unknown') return null
      context.cache.put(record, now)
      return { kind: 'settled', record, waited, cached: false }
    case 'first_attempt':
    case 'reclaimed':
      return null
    default:
      return refusal(context, command, decision, record)
  }
}

function givenBack(context: Context, grant: Grant): Landing {
  context.settler.release(grant)
  return {
    kind: 'refused',
    error: new OnceError('not_done', 'The caller gave up before the effect began.', { retryAfterMs: 0 }),
  }
}

/** The main path: the effect under its lease, then its outcome under the same fence. */
async function runEffect(
  context: Context,
  op: Declared,
  grant: Grant,
  sentAt: number,
  effect: Effect,
): Promise<Landing> {
  // 1. The lease is kept alive while the effect runs.
  const lease = context.heart.hold(op, grant, sentAt)
  const attempt = createAttempt(lease, (pointer) => attach(context, lease, pointer))
  // 2. The effect. From here to the settle a crash leaves the record in progress: the policy decides then.
  let value: unknown
  try {
    lease.check()
    value = await effect(attempt)
  } catch (thrown) {
    return settleThrown(context, op, lease, thrown)
  }
  // 3. The outcome. Recording is outside of the effect's try: its failure must not look like a failed effect.
  const packed = packValue(op, value)
  if (packed.problem !== null) {
    context.events.emit({ kind: 'outcome_not_stored', identity: grant.identity, why: packed.problem })
  }
  return settleValue(context, lease, attempt, value, packed)
}

async function settleValue(
  context: Context,
  lease: HeldLease,
  attempt: Attempt,
  value: unknown,
  packed: Packed,
): Promise<Landing> {
  const { grant } = lease
  const to: Settlement = { state: 'succeeded', outcome: packed.outcome }
  const pointer = packed.pointer ?? attempt.pointer
  const decision = await context.settler.settle(grant, to, packed.pointer, lease.letGo)
  if (decision?.kind === 'lease_lost')
    return { kind: 'refused', error: leaseLost(grant.identity.operation, decision.state) }
  return { kind: 'executed', value, packed: { ...packed, pointer } }
}

/** The effect table: what a thrown error means, for each kind of effect. */
async function settleThrown(context: Context, op: Declared, lease: HeldLease, thrown: unknown): Promise<Landing> {
  const { grant } = lease
  const error = isVerdict(thrown) ? thrown.error : thrown
  const outcome = packFailure(error)
  const to = settlementOf(context, op, grant, thrown, outcome)
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

function settlementOf(
  context: Context,
  op: Declared,
  grant: Grant,
  thrown: unknown,
  outcome: Packed['outcome'],
): Settlement {
  if (isVerdict(thrown) && thrown.verdict === 'final') return { state: 'failed_terminal', outcome }
  const proven = isVerdict(thrown) || op.effect === 'repeatable' || op.classify(thrown) === 'not_done'
  if (!proven) return { state: 'unknown', reason: outcome.data }
  const asked = isVerdict(thrown) ? thrown.retryAfterMs : null
  return {
    state: 'failed_retryable',
    outcome,
    retryAfterMs: asked ?? retryAfterMs(grant.attempt, context.runtime.random()),
  }
}

export async function attach(context: Context, lease: HeldLease, pointer: Pointer): Promise<void> {
  const { id, claimId, fence, identity } = lease.grant
  const { decision } = await context.batcher.apply({ kind: 'attach', id, claimId, fence, pointer })
  if (decision.kind === 'lease_lost') throw leaseLost(identity.operation, decision.state)
}
