import type { Context } from './context.ts'
import { compareFingerprints } from './core/digest.ts'
import { OnceError } from './core/errors.ts'
import type { Command, Declared } from './declared.ts'
import { leaseOver } from './effect-context.ts'
import type { Flight, Landing } from './flight.ts'
import { watch } from './flight.ts'
import { refusal, stillRunning } from './refusal.ts'

/** What a call does behind a twin that runs in this process, and how long it waits for it. */

export function differs(op: Declared, flight: Flight, command: Command): boolean {
  const match = compareFingerprints(flight.command.fingerprints[0], command.fingerprints)
  return match === 'different' || (match === 'unverified' && op.refuseUnverified)
}

/** Another payload under a key whose effect runs in this process. */
export function reused(context: Context, command: Command, flight: Flight): Landing {
  const [recorded] = flight.command.fingerprints
  const [presented] = command.fingerprints
  return refusal(context, command, { kind: 'key_reused', recorded, presented }, null)
}

export async function landingOfTwin(
  context: Context,
  op: Declared,
  flight: Flight,
  wait: Wait | undefined,
): Promise<Landing> {
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
    // Its lease is over, so that its effect may run forever: decide again.
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
export async function decided(context: Context, flight: Flight, wait: Wait | undefined): Promise<boolean> {
  using decision = watch(flight, () => flight.runs)
  return await patiently(context, flight, decision.seen, wait)
}

/** When a caller leaves what it waits for: with its signal, or when the store has not decided in time. */
export type Wait =
  | AbortSignal
  | { readonly signal: AbortSignal | undefined; readonly decideMs: number; readonly decideBy: number }

/** A caller that may leave: its signal is made only where something is waited for. */
export interface Leaving extends Pick<AbortSignal, 'aborted' | 'throwIfAborted'> {
  signal(): AbortSignal
}

export function signalOf(leaving: AbortSignal | Leaving | undefined): AbortSignal | undefined {
  // Not by class: signals of another realm, or of a polyfill, are signals too.
  return leaving !== undefined && 'signal' in leaving ? leaving.signal() : leaving
}

export function waitFromNow(
  { runtime }: Context,
  given: { readonly signal?: AbortSignal | Leaving | undefined; readonly decideMs?: number | undefined },
): Wait | undefined {
  const { decideMs } = given
  const signal = signalOf(given.signal)
  return decideMs === undefined ? signal : { signal, decideMs, decideBy: runtime.monotonicMs() + decideMs }
}

/** One caller's wait for something of a flight, which continues without that caller. */
export function patiently<T>(
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
export function leavable<T>(work: Promise<T>, signal: AbortSignal, left?: (reason: unknown) => void): Promise<T> {
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
