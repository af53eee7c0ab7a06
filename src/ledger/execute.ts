import type { Context } from './context.ts'
import { openTransaction, refuseInsideTransaction, refuseWhenStopped } from './context.ts'
import { OnceError } from './core/errors.ts'
import { compareFingerprints } from './core/fingerprint.ts'
import type { IdentityParts } from './core/identity.ts'
import type { Command, Declared } from './declared.ts'
import { commandOf } from './declared.ts'
import type { Work } from './effect.ts'
import { leaseOver } from './effect-context.ts'
import type { Flight, Landing } from './flight.ts'
import { whetherRuns } from './flight.ts'
import { leadLeased } from './lead.ts'
import type { Execution } from './present.ts'
import { present } from './present.ts'
import { refusal } from './refusal.ts'
import { joinTransaction, leadTransaction } from './transact.ts'

export interface CallOptions {
  /** The caller gives up: before its effect began the claim is given back, afterwards the effect continues. */
  readonly signal?: AbortSignal
  /** The caller as `authorize` and `rebuild` should see it. */
  readonly as?: unknown
  /**
   * How long the store may take to say how things stand; then the caller gives up, with `store_unavailable`. What runs,
   * here or elsewhere, is waited for as long as ever. With 0 the store is not asked: only what this process knows counts.
   */
  readonly decideMs?: number
}

/** The identity and the input of a call, as they were given. */
export interface Asked {
  readonly parts: IdentityParts
  readonly input: unknown
}

/** The way of every command: answered from memory, by a twin in this process, or by leading a flight of its own. */
export async function execute(
  context: Context,
  op: Declared,
  { parts, input }: Asked,
  options: CallOptions,
  work: Work,
): Promise<Execution<unknown>> {
  const transactional = op.effect === 'transaction'
  if (!transactional) refuseInsideTransaction(op.name)
  const command = commandOf(op, parts, input, options.as)
  const outer = transactional ? openTransaction() : null
  if (outer !== null && outer.store === context.store)
    return present(context, op, command, await joinTransaction(context, op, command, work.effect, outer), true)
  refuseWhenStopped(context)
  options.signal?.throwIfAborted()
  const tooOften = context.attemptLimit.check(op, command)
  if (tooOften !== null) return { kind: 'refused', error: tooOften }
  const startedAt = context.runtime.monotonicMs()
  for (;;) {
    const known = remembered(context, command)
    if (known !== null) return present(context, op, command, known, false)
    const running = context.flights.get(command.id)
    const other = running !== undefined && differs(op, running, command)
    if (other && (await whetherRuns(running)))
      return present(context, op, command, reused(context, command, running), false)
    if (other && context.flights.get(command.id) !== running) continue
    const leader = running === undefined || other
    if (leader && options.decideMs === 0) return { kind: 'refused', error: notAsked() }
    // Another payload does not wait behind a twin that itself waits: the store knows whether the key is taken.
    const lead = transactional ? leadTransaction : leadLeased
    const flight = leader
      ? context.flights.start(command, (_, own) => lead(context, op, command, work, own), other)
      : running
    const until = (signal: AbortSignal | undefined) =>
      leader ? untilAborted(flight, flight.landed, signal, work.handedOver) : landingOfTwin(context, op, flight, signal)
    // Most callers wait for the store as long as it takes: for them nothing is put around the landing.
    const { decideMs, signal } = options
    const landing = await (decideMs === undefined
      ? until(signal)
      : decidedInTime(context, flight, { decideMs, signal }, startedAt, until))
    if (!leader && landing.kind === 'released') continue
    return present(context, op, command, landing, leader)
  }
}

const notAsked = () => new OnceError('store_unavailable', 'The store is not asked for now.', { applied: 'no' })

/** A hot key is answered from the local cache; once a second one caller reads the record again. */
function remembered(context: Context, command: Command): Landing | null {
  const entry = context.cache.get(command.id)
  if (entry === null || compareFingerprints(entry.record.fingerprint, command.fingerprints) !== 'same') return null
  return entry.fresh ? { kind: 'settled', record: entry.record, waited: false, cached: true } : null
}

function differs(op: Declared, flight: Flight, command: Command): boolean {
  const match = compareFingerprints(flight.command.fingerprints[0], command.fingerprints)
  return match === 'different' || (match === 'unverified' && op.refuseUnverified)
}

/** Another payload under a key whose effect runs in this process. */
function reused(context: Context, command: Command, flight: Flight): Landing {
  const [recorded] = flight.command.fingerprints
  const [presented] = command.fingerprints
  return refusal(context, command, { kind: 'key_reused', recorded, presented }, null)
}

/** A caller that does not want to wait for the store leaves the flight as if it had hung up. */
async function decidedInTime(
  { runtime }: Context,
  flight: Flight,
  { decideMs, signal }: { readonly decideMs: number; readonly signal: AbortSignal | undefined },
  startedAt: number,
  landing: (signal: AbortSignal | undefined) => Promise<Landing>,
): Promise<Landing> {
  const late = new AbortController()
  const giveUp = () =>
    late.abort(new OnceError('store_unavailable', `No decision within ${decideMs} ms.`, { applied: 'maybe' }))
  const leftMs = Math.max(0, startedAt + decideMs - runtime.monotonicMs())
  const timer = runtime.setTimer(leftMs, giveUp, false)
  void whetherRuns(flight).then(() => timer.cancel())
  try {
    return await landing(signal === undefined ? late.signal : AbortSignal.any([signal, late.signal]))
  } finally {
    timer.cancel()
  }
}

const JOINED_RETRY_MS = 500

async function landingOfTwin(
  context: Context,
  op: Declared,
  flight: Flight,
  signal: AbortSignal | undefined,
): Promise<Landing> {
  const stillRunning = () =>
    refusal(
      context,
      flight.command,
      { kind: 'in_progress', attempt: 1, retryAfterMs: JOINED_RETRY_MS, verified: true },
      null,
    )
  if (typeof op.whileRunning === 'string') {
    return (await whetherRuns(flight)) ? stillRunning() : untilAborted(flight, flight.landed, signal)
  }
  const { runtime, joiners, events } = context
  const { waitMs } = op.whileRunning
  const startedAt = runtime.monotonicMs()
  return joiners.counted(async () => {
    const sooner = Promise.withResolvers<Landing | null>()
    const timer = runtime.setTimer(waitMs, () => sooner.resolve(null), false)
    const decideAnew = () => sooner.resolve({ kind: 'released', error: leaseOver(op.name) })
    const listeners = (flight.leaveListeners ??= new Set())
    listeners.add(decideAnew)
    try {
      const landing = await untilAborted(flight, Promise.race([flight.landed, sooner.promise]), signal)
      if (landing === null) return stillRunning()
      const waitedMs = runtime.monotonicMs() - startedAt
      const shared = landing.kind === 'executed' || landing.kind === 'failed'
      if (shared) events.emit({ kind: 'joined', identity: flight.command.identity, waitedMs })
      return landing
    } finally {
      timer.cancel()
      listeners.delete(decideAnew)
    }
  })
}

/** A caller that hangs up, or waited long enough, leaves the flight; the flight itself is never cancelled by it. */
function untilAborted<T>(
  flight: Flight,
  work: Promise<T>,
  signal: AbortSignal | undefined,
  staysOnceBegun = false,
): Promise<T> {
  flight.callers++
  // Without a signal this caller stays until the flight is over, and callers are not counted after that.
  if (signal === undefined && work === flight.landed) return work
  return new Promise((resolve, reject) => {
    let here = true
    const leave = () => {
      if (here) flight.callers--
      here = false
      signal?.removeEventListener('abort', hangUp)
    }
    // At once, not when the promise is noticed: a claim that is granted in between must find no caller.
    const hangUp = () => {
      // An effect that was handed over has begun: its outcome comes from the caller that this signal belongs to.
      if (staysOnceBegun && flight.runs === true) return
      leave()
      reject(signal?.reason)
    }
    if (signal?.aborted === true) hangUp()
    else signal?.addEventListener('abort', hangUp, { once: true })
    work.then(
      (landing) => {
        leave()
        resolve(landing)
      },
      (error: unknown) => {
        leave()
        reject(error)
      },
    )
  })
}
