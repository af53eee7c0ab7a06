import type { Around, Context } from './context.ts'
import { nestedClaim, openTransaction, stopped } from './context.ts'
import { OnceError } from './core/errors.ts'
import { compareFingerprints } from './core/fingerprint.ts'
import type { IdentityParts } from './core/identity.ts'
import type { Command, Declared } from './declared.ts'
import { commandOf } from './declared.ts'
import type { Effect } from './effect.ts'
import type { EffectContext } from './effect-context.ts'
import { leaseOver } from './effect-context.ts'
import type { Flight, Landing } from './flight.ts'
import { newFlight, watch } from './flight.ts'
import type { Answered, Begun, Ended, Granted } from './granted.ts'
import { leadLeased } from './lead.ts'
import type { Execution } from './present.ts'
import { present } from './present.ts'
import { refusal, stillRunning } from './refusal.ts'
import { handOver, joinTransaction, leadTransaction } from './transact.ts'

export interface CallOptions {
  /**
   * The caller gives up: before its effect began the claim is given back, afterwards the effect continues.
   * @default none
   */
  readonly signal?: AbortSignal
  /** The caller as `authorize` and `rebuild` should see it. @default undefined */
  readonly as?: unknown
  /**
   * How long the store may take to decide; then the caller gets `store_unavailable`. A running attempt, here or in another
   * process, is waited for as usual. With 0 the store is not called: only what this process knows counts.
   * @default 10_000
   */
  readonly decideMs?: number
}

export interface BeginOptions extends CallOptions {
  /**
   * Claim ahead of execution: the effect may begin only after `start`. Twins do not join it, nor does `stop` wait for it.
   * @default false
   */
  readonly reserve?: boolean
  /**
   * What makes it the same command, computed already: the current form first, then those of older shapes. The input is not
   * fingerprinted then.
   * @default made of the input
   */
  readonly fingerprints?: readonly [string, ...string[]]
}

/** One call of an operation, as it was given. */
export interface Asked {
  readonly parts: IdentityParts
  readonly input: unknown
  readonly options: BeginOptions
}

/** Both phases at once: begin, call the effect, settle. */
export async function execute(
  context: Context,
  op: Declared,
  asked: Asked,
  effect: Effect,
): Promise<Execution<unknown>> {
  const begun = await begin(context, op, asked, effect)
  if (begun.kind === 'answered') return begun.execution
  const { signal } = asked.options
  // It left after the grant, before its effect began.
  if (signal?.aborted === true) {
    await begun.abandon(signal.reason).catch(ignore)
    throw signal.reason
  }
  const ending = carryOut(context.around, begun, effect)
  return signal === undefined ? ending : leavable(ending, signal)
}

async function carryOut(
  around: Around | null,
  { context, command, settle }: Granted<EffectContext>,
  effect: Effect,
): Promise<Execution<unknown>> {
  let ended: Ended
  try {
    const work = () => effect(context as never)
    ended = { value: await (around === null ? work() : around('effect', command, async () => work())) }
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
  { parts, input, options }: Asked,
  effect: Effect | null = null,
): Promise<Begun<EffectContext>> {
  const transactional = op.effect === 'transaction'
  const outer = openTransaction()
  if (outer !== null && !transactional) throw nestedClaim(op.name)
  const command = commandOf(op, parts, input, options)
  const { reserve = false, signal, decideMs } = options
  signal?.throwIfAborted()
  if (outer !== null && outer.store === context.store) {
    const join = (work: Effect) => joinTransaction(context, op, command, work, outer)
    const joined = effect === null ? handOver(context, op, command, join) : join(effect)
    return answeredBy(context, op, command, await joined, true)
  }
  if (context.life.stopped) throw stopped()
  const tooOften = op.definition.perKeyLimit === undefined ? null : context.attemptLimit.check(op, command)
  if (tooOften !== null) return refused(tooOften)
  const waitFromNow = (): Wait | undefined =>
    decideMs === undefined ? signal : { signal, decideMs, decideBy: context.runtime.monotonicMs() + decideMs }
  let wait = waitFromNow()
  for (;;) {
    const known = remembered(context, command)
    if (known !== null) return answeredBy(context, op, command, known, false)
    const running = reserve ? undefined : context.flights.get(command.id)
    const other = running !== undefined && differs(op, running, command)
    if (other && running.runs === null && decideMs === 0) return refused(notAsked())
    if (other && (await decided(context, running, wait)))
      return answeredBy(context, op, command, reused(context, command, running), false)
    if (other && context.flights.get(command.id) !== running) continue
    if (running !== undefined && !other) {
      const landing = await landingOfTwin(context, op, running, wait)
      if (landing.kind !== 'released') return answeredBy(context, op, command, landing, false)
      // The store had decided in time for the attempt that was waited for; the next decision has its own time.
      if (running.runs === true) wait = waitFromNow()
      continue
    }
    if (decideMs === 0) return refused(notAsked())
    // Another payload does not wait behind a twin that itself waits: the store knows whether the key is taken.
    const flight = reserve ? newFlight(command) : context.flights.start(command, other)
    const lead = leadFlight(context, op, flight, effect, reserve)
    const led =
      wait === undefined ? lead : patiently(context, flight, lead, wait, (reason) => abandon(flight, lead, reason))
    return answeredBy(context, op, command, await led, true)
  }
}

const answered = (execution: Execution<unknown>): Answered => ({ kind: 'answered', execution })

const refused = (error: OnceError): Answered => answered({ kind: 'refused', error })

function answeredBy(
  context: Context,
  op: Declared,
  command: Command,
  led: Granted<EffectContext> | Landing,
  leader: boolean,
): Begun<EffectContext> | Promise<Answered> {
  if (led.kind === 'granted') return led
  const execution = present(context, op, command, led, leader)
  return execution instanceof Promise ? execution.then(answered) : answered(execution)
}

/** Until the effect may begin, or the flight has landed. */
function leadFlight(
  context: Context,
  op: Declared,
  flight: Flight,
  effect: Effect | null,
  reserve: boolean,
): Promise<Granted<EffectContext> | Landing> {
  const { command } = flight
  const land = <L extends Granted<EffectContext> | Landing>(led: L): L => {
    if (led.kind !== 'granted') context.flights.land(flight, led)
    return led
  }
  const fail = (error: unknown): never => {
    context.flights.land(flight, { kind: 'thrown', error })
    throw error
  }
  if (op.effect !== 'transaction') return leadLeased(context, op, command, flight, reserve).then(land, fail)
  const handedOver = effect === null
  const lead = (work: Effect) =>
    leadTransaction(context, op, command, { effect: work, handedOver }, flight).then(land, fail)
  return handedOver ? handOver(context, op, command, lead) : lead(effect)
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

async function landingOfTwin(context: Context, op: Declared, flight: Flight, wait: Wait | undefined): Promise<Landing> {
  const { command } = flight
  const landed = () => flight.landing
  if (typeof op.whileRunning === 'string') {
    if ((await decided(context, flight, wait)) && flight.landing === null) return stillRunning(context, command)
    using landing = watch(flight, landed)
    return await patiently(context, flight, landing.seen, wait)
  }
  const { runtime, joiners, events } = context
  const { waitMs } = op.whileRunning
  const startedAt = runtime.monotonicMs()
  return joiners.counted(async () => {
    const late = Promise.withResolvers<null>()
    const timer = runtime.setTimer(waitMs, () => late.resolve(null), false)
    // Its lease is over, so that its effect may run for ever: decide anew.
    const decideAnew: Landing = { kind: 'released', error: leaseOver(op.name) }
    using outcome = watch(flight, () => flight.landing ?? (context.flights.isJoined(flight) ? null : decideAnew))
    try {
      const landing = await patiently(context, flight, Promise.race([outcome.seen, late.promise]), wait)
      if (landing === null) return stillRunning(context, command)
      const waitedMs = runtime.monotonicMs() - startedAt
      const shared = landing.kind === 'executed' || landing.kind === 'failed'
      if (shared) events.emit({ kind: 'joined', identity: command.identity, waitedMs })
      return landing
    } finally {
      timer.cancel()
    }
  })
}

/** Whether an attempt of this process runs the effect. */
async function decided(context: Context, flight: Flight, wait: Wait | undefined): Promise<boolean> {
  using decision = watch(flight, () => flight.runs)
  return await patiently(context, flight, decision.seen, wait)
}

/** When a caller leaves what it waits for: with its signal, or when the store has not decided in time. */
type Wait =
  | AbortSignal
  | { readonly signal: AbortSignal | undefined; readonly decideMs: number; readonly decideBy: number }

/** One caller's wait for something of a flight, which continues without that caller. */
function patiently<T>(
  { runtime }: Context,
  flight: Flight,
  work: Promise<T>,
  wait: Wait | undefined,
  left?: (reason: unknown) => void,
): Promise<T> {
  if (wait === undefined) return work
  if (!('decideBy' in wait)) return leavable(work, wait, left)
  const { signal, decideMs, decideBy } = wait
  const late = new AbortController()
  const giveUp = () =>
    late.abort(new OnceError('store_unavailable', `No decision within ${decideMs} ms.`, { applied: 'maybe' }))
  const timer = runtime.setTimer(Math.max(0, decideBy - runtime.monotonicMs()), giveUp, false)
  const decision = watch(flight, () => flight.runs)
  void decision.seen.then(() => timer.cancel())
  const either = signal === undefined ? late.signal : AbortSignal.any([signal, late.signal])
  return leavable(work, either, left).finally(() => {
    timer.cancel()
    decision[Symbol.dispose]()
  })
}

/** Rejects as soon as the signal fires. What is waited for continues. */
function leavable<T>(work: Promise<T>, signal: AbortSignal, left?: (reason: unknown) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    // At once, not when the promise is noticed: a claim that is granted in between must find no caller.
    const leave = () => {
      left?.(signal.reason)
      reject(signal.reason)
    }
    if (signal.aborted) leave()
    else signal.addEventListener('abort', leave, { once: true })
    work.then(
      (value) => {
        signal.removeEventListener('abort', leave)
        resolve(value)
      },
      (error: unknown) => {
        signal.removeEventListener('abort', leave)
        reject(error)
      },
    )
  })
}
