import type { Awaitable } from '../runtime/runtime.ts'
import type { CachedReplay } from './cache.ts'
import type { Around, Context } from './context.ts'
import { nestedClaim, openTransaction, stopped } from './context.ts'
import { canonicalValue } from './core/canonical.ts'
import { compareFingerprints, fingerprintOf } from './core/digest.ts'
import { OnceError } from './core/errors.ts'
import type { Identity, IdentityParts, RecordId } from './core/identity.ts'
import { checkIdentity, recordIdOf, UNIQUE_PREFIX } from './core/identity.ts'
import type { Command, Declared } from './declared.ts'
import { FIRST_SHAPE } from './declared.ts'
import type { AnyDefinition } from './definition.ts'
import type { Effect } from './effect.ts'
import type { EffectContext } from './effect-context.ts'
import type { Flight, Landing } from './flight.ts'
import { OwnFlight } from './flight.ts'
import type { Answered, Begun, Ended, Granted } from './granted.ts'
import { leadLeased } from './lead.ts'
import type { Execution } from './present.ts'
import { present } from './present.ts'
import { handOver, joinTransaction, leadTransaction } from './transact.ts'
import type { Leaving, Wait } from './twins.ts'
import { decided, differs, landingOfTwin, leavable, patiently, reused, signalOf, waitFromNow } from './twins.ts'

export interface CallOptions {
  /**
   * The caller gives up: before its effect began the claim is given back, afterwards the effect continues.
   * @default none
   */
  readonly signal?: AbortSignal | undefined
  /** The caller as `authorize` and `rebuild` should see it. @default undefined */
  readonly as?: unknown
  /**
   * How long the store may take to decide; then the caller gets `store_unavailable`. A running attempt, here or in another
   * process, is waited for as usual. With 0 the store is not called: only what this process knows counts.
   * @default 10_000
   */
  readonly decideMs?: number | undefined
}

export interface BeginOptions extends Omit<CallOptions, 'signal'> {
  /** The caller gives up: until the grant the claim is given back. @default none */
  readonly signal?: AbortSignal | Leaving | undefined
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

/** Both phases at once: begin, call the effect, settle. */
export async function execute(
  context: Context,
  op: Declared,
  parts: IdentityParts,
  input: unknown,
  options: CallOptions,
  effect: Effect,
): Promise<Execution<unknown>> {
  const begun = await begin(context, op, parts, input, options, effect)
  if (begun.kind === 'answered') return begun.execution
  const { signal } = options
  // It left after the grant, before its effect began.
  if (signal?.aborted === true) {
    await abandoned(begun, signal.reason)
    throw signal.reason
  }
  const ending = carryOut(context.around, begun, effect)
  return signal === undefined ? ending : leavable(ending, signal)
}

async function carryOut(
  around: Around | null,
  granted: Granted<EffectContext>,
  effect: Effect,
): Promise<Execution<unknown>> {
  const { context, command } = granted
  let ended: Ended
  try {
    const work = () => effect(context as never)
    const isWrapped = around !== null && around.took === undefined
    ended = { value: await (isWrapped ? around('effect', command, async () => work()) : granted.inside(work)) }
  } catch (thrown) {
    ended = { thrown }
  }
  return granted.settle(ended)
}

/** One call that is not answered from memory. A class for the reason of commands. */
class Call {
  declare readonly context: Context
  declare readonly op: Declared
  declare readonly command: Command
  declare readonly options: BeginOptions
  /** What `execute` was given: a transaction is carried out at once, and again when its database rolled it back. */
  declare readonly effect: Effect | null

  constructor(context: Context, op: Declared, command: Command, options: BeginOptions, effect: Effect | null) {
    this.context = context
    this.op = op
    this.command = command
    this.options = options
    this.effect = effect
  }
}

/**
 * The way of every command: answered from memory, by a twin in this process, or by leading a flight of its own. A promise
 * only where something has to be waited for; what is wrong with the call itself is thrown at once.
 */
export function begin(
  context: Context,
  op: Declared,
  parts: IdentityParts,
  input: unknown,
  options: BeginOptions,
  effect: Effect | null = null,
): Awaitable<Begun<EffectContext>> {
  const outer = openTransaction()
  if (outer !== null && op.effect !== 'transaction') throw nestedClaim(op.name)
  const command = commandOf(op, parts, input, options)
  const { signal, decideMs, reserve } = options
  signal?.throwIfAborted()
  if (outer !== null && outer.store === context.store) {
    const join = (work: Effect) => joinTransaction(context, op, command, work, outer)
    const joined = effect === null ? handOver(context, op, command, join) : join(effect)
    return joined.then((given) => answeredBy(context, op, command, given, true))
  }
  if (context.life.stopped) throw stopped()
  const tooOften = op.definition.perKeyLimit === undefined ? null : context.attemptLimit.check(op, command)
  if (tooOften !== null) return refused(tooOften)
  // A hot key is answered from the local cache; once a second one caller reads the record again.
  const hot = context.cache.fresh(command.id)
  const known = hot === null ? null : settledHere(command, hot)
  if (known !== null) return answeredBy(context, op, command, known, false)
  const call = new Call(context, op, command, options, effect)
  const isAlone = reserve === true || context.flights.get(command.id) === null
  return isAlone && decideMs === undefined ? led(call, false) : behindTwins(call)
}

/** A twin runs in this process, or the store must decide in time. */
async function behindTwins(call: Call): Promise<Begun<EffectContext>> {
  const { context, op, command, options } = call
  const { reserve, decideMs } = options
  let wait = waitFromNow(context, options)
  for (;;) {
    const settled = settledHere(command, context.cache.fresh(command.id))
    if (settled !== null) return answeredBy(context, op, command, settled, false)
    const running = reserve === true ? null : context.flights.get(command.id)
    const other = running !== null && differs(op, running, command)
    if (other && running.runs === null && decideMs === 0) return refused(notAsked())
    if (other && (await decided(context, running, wait)))
      return answeredBy(context, op, command, reused(context, command, running), false)
    if (other && context.flights.get(command.id) !== running) continue
    if (running !== null && !other) {
      const landing = await landingOfTwin(context, op, running, wait)
      if (landing.kind !== 'released') return answeredBy(context, op, command, landing, false)
      // The store had decided in time for the attempt that was waited for; the next decision has its own time.
      if (running.runs === true) wait = waitFromNow(context, options)
      continue
    }
    if (decideMs === 0) {
      const known = settledHere(command, context.cache.known(command.id))
      return known === null ? refused(notAsked()) : answeredBy(context, op, command, known, false)
    }
    // Another payload does not wait behind a twin that itself waits: the store knows whether the key is taken.
    return led(call, other, wait)
  }
}

/** Leads a flight of its own, which continues when its caller leaves. */
function led(call: Call, apart: boolean, given?: Wait): Awaitable<Begun<EffectContext>> {
  const { context, op, command } = call
  const reserve = call.options.reserve === true
  const flight = reserve ? new OwnFlight(command) : context.flights.start(command, apart)
  if (call.options.decideMs !== undefined) flight.keptSince = context.runtime.monotonicMs()
  let lead: Awaitable<Led>
  try {
    lead = op.effect === 'transaction' ? leadInTransaction(call, flight) : leadLeased(context, op, flight, reserve)
  } catch (error) {
    return failing(context, flight, error)
  }
  if (!(lead instanceof Promise)) {
    return lead.kind === 'granted' ? lead : answeredBy(context, op, command, landing(context, flight, lead), true)
  }
  const over = op.effect === 'transaction' ? lead : landed(context, flight, lead)
  const wait = given ?? signalOf(call.options.signal)
  const waited = wait === undefined ? over : patiently(context, flight, over, wait, (why) => abandon(flight, over, why))
  return waited.then((given) => answeredBy(context, op, command, given, true))
}

const answered = (execution: Execution<unknown>): Answered => ({ kind: 'answered', execution })

const refused = (error: OnceError): Answered => answered({ kind: 'refused', error })

function answeredBy(
  context: Context,
  op: Declared,
  command: Command,
  given: Led,
  leader: boolean,
): Awaitable<Begun<EffectContext>> {
  if (given.kind === 'granted') return given
  const execution = present(context, op, command, given, leader)
  return execution instanceof Promise ? execution.then(answered) : { kind: 'answered', execution }
}

type Led = Granted<EffectContext> | Landing

function leadInTransaction({ context, op, command, effect }: Call, flight: Flight): Promise<Led> {
  const handedOver = effect === null
  const lead = (work: Effect) =>
    landed(context, flight, leadTransaction(context, op, command, { effect: work, handedOver }, flight))
  return handedOver ? handOver(context, op, command, lead) : lead(effect)
}

function landed<L extends Led>(context: Context, flight: Flight, lead: Promise<L>): Promise<L> {
  return lead.then(
    (given) => landing(context, flight, given),
    (error: unknown) => failing(context, flight, error),
  )
}

function landing<L extends Led>({ flights }: Context, flight: Flight, given: L): L {
  if (given.kind !== 'granted') flights.land(flight, given)
  return given
}

function failing({ flights }: Context, flight: Flight, error: unknown): never {
  flights.land(flight, { kind: 'thrown', error })
  throw error
}

/** The caller that leads a flight has left it. */
function abandon(flight: Flight, lead: Promise<Led>, reason: unknown): void {
  flight.abandoned = true
  // A grant that came in this very moment.
  void lead.then((given) => (given.kind === 'granted' ? abandoned(given, reason) : undefined), ignore)
}

async function abandoned(granted: Granted<EffectContext>, reason: unknown): Promise<void> {
  try {
    await granted.abandon(reason)
  } catch {
    // What cannot be given back lapses.
  }
}

function ignore(): void {}

const notAsked = () =>
  new OnceError('store_unavailable', 'Circuit open: the store is not being called.', { applied: 'no' })

function settledHere(command: Command, cached: CachedReplay | null): Landing | null {
  if (cached === null || compareFingerprints(cached.record.fingerprint, command.fingerprints) !== 'same') return null
  return { kind: 'settled', record: cached.record, waited: false, cached }
}

/**
 * A class, and not a literal: where some survive, V8 allocates the objects of a literal in its old generation, and each of
 * them would keep the request that it stands for until the next full collection. As in all classes on the way of a request,
 * the fields are only declared: with an initializer each of them is written twice.
 */
class GivenCommand implements Command {
  declare readonly identity: Identity
  declare readonly id: RecordId
  declare readonly input: unknown
  declare readonly fingerprints: Command['fingerprints']
  declare readonly as: unknown

  constructor(identity: Identity, id: RecordId, input: unknown, fingerprints: Command['fingerprints'], as: unknown) {
    this.identity = identity
    this.id = id
    this.input = input
    this.fingerprints = fingerprints
    this.as = as
  }
}

/** Checks the identity and computes the fingerprints before anything is touched. */
export function commandOf(
  op: Declared,
  parts: IdentityParts,
  input: unknown,
  { as, fingerprints }: { readonly as?: unknown; readonly fingerprints?: Command['fingerprints'] },
): Command {
  const { tenant, caller, key, batch, operation = op.name } = (parts ?? {}) as IdentityParts
  const identity = batch === undefined ? { tenant, caller, operation, key } : { tenant, caller, operation, key, batch }
  checkIdentity(identity)
  if (operation.startsWith(UNIQUE_PREFIX)) {
    throw new OnceError('bad_identity', `The operation must not start with "${UNIQUE_PREFIX}".`, {
      details: { part: 'operation' },
    })
  }
  const id = recordIdOf(identity)
  return new GivenCommand(identity, id, input, fingerprints ?? fingerprintsOf(op.definition, input), as)
}

function fingerprintsOf(definition: AnyDefinition, input: unknown): [string, ...string[]] {
  const { fingerprint, shape = FIRST_SHAPE, shapes } = definition
  const current = fingerprintUnder(fingerprint, input, shape)
  if (shapes === undefined) return [current]
  const old = Object.entries(shapes).map(([number, form]) => fingerprintUnder(form, input, Number(number)))
  return [current, ...old]
}

function fingerprintUnder(form: ((input: unknown) => unknown) | undefined, input: unknown, shape: number): string {
  try {
    return fingerprintOf(canonicalValue(form === undefined ? (input ?? null) : chosenBy(form, input)), shape)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    const text = `The input cannot be fingerprinted: ${why.replace(/\.$/, '')}. Choose what identifies it with \`fingerprint\`.`
    throw new OnceError('bad_input', text, { cause })
  }
}

/** Undefined is what a misspelled field gives: every payload would be the same command. */
function chosenBy(form: (input: unknown) => unknown, input: unknown): unknown {
  const chosen = form(input)
  if (chosen === undefined) throw new Error('`fingerprint` returned undefined; return null where nothing is compared')
  return chosen
}
