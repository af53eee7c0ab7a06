import type { Context } from './context.ts'
import { openTransaction, refuseInsideTransaction, refuseWhenStopped } from './context.ts'
import { OnceError } from './core/errors.ts'
import { compareFingerprints } from './core/fingerprint.ts'
import type { IdentityParts } from './core/identity.ts'
import type { Command, Declared } from './declared.ts'
import { commandOf } from './declared.ts'
import type { Effect } from './effect.ts'
import type { EffectContext } from './effect-context.ts'
import { leaseOver } from './effect-context.ts'
import type { Flight, Landing } from './flight.ts'
import { newFlight, seen } from './flight.ts'
import type { Answered, Begun, Ended, Granted } from './granted.ts'
import { leadLeased } from './lead.ts'
import type { Execution } from './present.ts'
import { present } from './present.ts'
import { refusal } from './refusal.ts'
import { beginNested, joinTransaction, leadTransaction } from './transact.ts'

export interface CallOptions {
  /** The caller gives up: before its effect began the claim is given back, afterwards the effect continues. */
  readonly signal?: AbortSignal
  /** The caller as `authorize` and `rebuild` should see it. */
  readonly as?: unknown
  /**
   * How long the store may take to decide; then the caller gets `store_unavailable`. A running attempt, here or in another
   * process, is waited for as usual. With 0 the store is not called: only what this process knows counts.
   */
  readonly decideMs?: number
}

export interface BeginOptions extends CallOptions {
  /** Claim ahead of execution: the effect may begin only after `start`. Twins do not join it, nor does `stop` wait for it. */
  readonly reserve?: boolean
}

/** The identity and the input of a call, as they were given. */
export interface Asked {
  readonly parts: IdentityParts
  readonly input: unknown
}

/** Both phases at once: begin, call the effect, settle. */
export async function execute(
  context: Context,
  op: Declared,
  asked: Asked,
  options: CallOptions,
  effect: Effect,
): Promise<Execution<unknown>> {
  const begun = await begin(context, op, asked, options, effect)
  if (begun.kind === 'answered') return begun.execution
  const ending = carryOut(begun, effect)
  return options.signal === undefined ? ending : leavable(ending, options.signal)
}

async function carryOut({ context, inside, settle }: Granted<EffectContext>, effect: Effect) {
  let ended: Ended
  try {
    ended = { value: await inside(() => effect(context as never)) }
  } catch (thrown) {
    ended = { thrown }
  }
  return settle(ended)
}

/**
 * The way of every command: answered from memory, by a twin in this process, or by leading a flight of its own.
 *
 * @param effect what `execute` was given: a transaction is carried out at once, and again when its database rolled it back
 */
export async function begin(
  context: Context,
  op: Declared,
  { parts, input }: Asked,
  options: BeginOptions,
  effect: Effect | null = null,
): Promise<Begun<EffectContext>> {
  const transactional = op.effect === 'transaction'
  if (!transactional) refuseInsideTransaction(op.name)
  const command = commandOf(op, parts, input, options.as)
  const outer = transactional ? openTransaction() : null
  if (outer !== null && outer.store === context.store) {
    if (effect === null) return answeredBy(context, op, command, await beginNested(context, op, command, outer), true)
    return answeredBy(context, op, command, await joinTransaction(context, op, command, effect, outer), true)
  }
  refuseWhenStopped(context)
  options.signal?.throwIfAborted()
  const tooOften = context.attemptLimit.check(op, command)
  if (tooOften !== null) return refused(tooOften)
  const patience = patienceOf(context, options)
  const { reserve = false } = options
  for (;;) {
    const known = remembered(context, command)
    if (known !== null) return answeredBy(context, op, command, known, false)
    const running = reserve ? undefined : context.flights.get(command.id)
    const other = running !== undefined && differs(op, running, command)
    if (other && (await seen(running, () => running.runs)))
      return answeredBy(context, op, command, reused(context, command, running), false)
    if (other && context.flights.get(command.id) !== running) continue
    if (running !== undefined && !other) {
      const landing = await landingOfTwin(context, op, running, patience)
      if (landing.kind === 'released') continue
      return answeredBy(context, op, command, landing, false)
    }
    if (options.decideMs === 0) return refused(notAsked())
    // Another payload does not wait behind a twin that itself waits: the store knows whether the key is taken.
    const flight = reserve ? newFlight(command) : context.flights.start(command, other)
    const lead = transactional
      ? leadTransaction(context, op, command, effect, flight)
      : leadLeased(context, op, command, flight, reserve)
    return answeredBy(context, op, command, await patience(flight, lead, abandon), true)
  }
}

const refused = (error: OnceError): Answered => ({ kind: 'answered', execution: { kind: 'refused', error } })

async function answeredBy(
  context: Context,
  op: Declared,
  command: Command,
  led: Granted<EffectContext> | Landing,
  leader: boolean,
): Promise<Begun<EffectContext>> {
  if (led.kind === 'granted') return led
  return { kind: 'answered', execution: await present(context, op, command, led, leader) }
}

/** The caller that leads a flight has left it. */
function abandon(flight: Flight, led: Promise<Granted<EffectContext> | Landing>, reason: unknown): void {
  flight.abandoned = true
  // A grant that came in this very moment.
  void led.then((start) => (start.kind === 'granted' ? start.abandon(reason) : undefined), ignore)
}

function ignore(): void {}

const notAsked = () =>
  new OnceError('store_unavailable', 'Circuit open: the store is not being called.', { applied: 'no' })

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

const JOINED_RETRY_MS = 500

async function landingOfTwin(context: Context, op: Declared, flight: Flight, patience: Patience): Promise<Landing> {
  const { command } = flight
  const stillRunning = () => {
    const running = { kind: 'in_progress', attempt: 1, retryAfterMs: JOINED_RETRY_MS, verified: true } as const
    return refusal(context, command, running, null)
  }
  const landed = () => flight.landing
  if (typeof op.whileRunning === 'string') {
    const runs = seen(flight, () => flight.runs)
    return (await patience(flight, runs)) && flight.landing === null
      ? stillRunning()
      : patience(flight, seen(flight, landed))
  }
  const { runtime, joiners, events } = context
  const { waitMs } = op.whileRunning
  const startedAt = runtime.monotonicMs()
  return joiners.counted(async () => {
    const late = Promise.withResolvers<null>()
    const timer = runtime.setTimer(waitMs, () => late.resolve(null), false)
    // Its lease is over, so that its effect may run for ever: decide anew.
    const decideAnew: Landing = { kind: 'released', error: leaseOver(op.name) }
    const outcome = seen(flight, () => flight.landing ?? (context.flights.isJoined(flight) ? null : decideAnew))
    try {
      const landing = await patience(flight, Promise.race([outcome, late.promise]))
      if (landing === null) return stillRunning()
      const waitedMs = runtime.monotonicMs() - startedAt
      const shared = landing.kind === 'executed' || landing.kind === 'failed'
      if (shared) events.emit({ kind: 'joined', identity: command.identity, waitedMs })
      return landing
    } finally {
      timer.cancel()
    }
  })
}

/**
 * One caller's wait for something of a flight. The caller may leave, and the flight continues: when its signal fires, or
 * when the store has not decided in time.
 */
type Patience = <T>(
  flight: Flight,
  work: Promise<T>,
  left?: (flight: Flight, work: Promise<T>, reason: unknown) => void,
) => Promise<T>

const endless: Patience = (_flight, work) => work

function patienceOf({ runtime }: Context, { signal, decideMs }: CallOptions): Patience {
  if (decideMs === undefined) {
    if (signal === undefined) return endless
    return (flight, work, left) => leavable(work, signal, left && ((reason) => left(flight, work, reason)))
  }
  const decideBy = runtime.monotonicMs() + decideMs
  return async (flight, work, left) => {
    const late = new AbortController()
    const giveUp = () => {
      if (flight.runs !== null) return
      late.abort(new OnceError('store_unavailable', `No decision within ${decideMs} ms.`, { applied: 'maybe' }))
    }
    const timer = runtime.setTimer(Math.max(0, decideBy - runtime.monotonicMs()), giveUp, false)
    const either = signal === undefined ? late.signal : AbortSignal.any([signal, late.signal])
    try {
      return await leavable(work, either, left && ((reason) => left(flight, work, reason)))
    } finally {
      timer.cancel()
    }
  }
}

/** Rejects as soon as the signal fires. What is waited for continues. */
function leavable<T>(work: Promise<T>, signal: AbortSignal, left?: (reason: unknown) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    // At once, not when the promise is noticed: a claim that is granted in between must find no caller.
    const leave = () => {
      left?.(signal.reason)
      reject(signal.reason)
    }
    const over = () => signal.removeEventListener('abort', leave)
    if (signal.aborted) leave()
    else signal.addEventListener('abort', leave, { once: true })
    work.then(
      (value) => {
        over()
        resolve(value)
      },
      (error: unknown) => {
        over()
        reject(error)
      },
    )
  })
}
