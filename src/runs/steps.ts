import { canonicalValue } from '../ledger/core/canonical-value.ts'
import { decodeValue } from '../ledger/core/codec.ts'
import { fingerprintOf } from '../ledger/core/digest.ts'
import { OnceError } from '../ledger/core/errors.ts'
import { limits } from '../ledger/core/limits.ts'
import type { SqlTx } from '../ledger/store/sql.ts'
import type {
  ChannelOptions,
  PlainOptions,
  PlannedStep,
  RetryPolicy,
  TransactionOptions,
  VerifyOptions,
} from './context.ts'
import { without } from './diff.ts'
import type { EntryKind } from './entry.ts'
import type { StepWork } from './perform.ts'
import { recordedText } from './recordable.ts'
import type { StepContext } from './step-context.ts'

/** What a body may give to `step`, in all its forms. */
export type StepOptions =
  | PlainOptions
  | TransactionOptions
  | VerifyOptions<unknown>
  | ChannelOptions<unknown, unknown>
  | PlannedStep<unknown, unknown>

export type StepFunction = (context: StepContext) => unknown

/** The one form in which steps are performed. */
export function workOf(
  id: string,
  options: StepOptions,
  act: StepFunction | undefined,
): { readonly kind: EntryKind; readonly work: StepWork } {
  const { retry = {}, timeoutMs = limits.runStepMs, unstable = [] } = options
  checkLimits(id, retry, timeoutMs)
  const common = { retry, timeoutMs, unstable }
  if ('channel' in options)
    return { kind: 'channel', work: { ...common, ...channelWork(id, options, needed(id, act)) } }
  if ('plan' in options) return { kind: 'channel', work: { ...common, ...plannedWork(id, options) } }
  const run = needed(id, act)
  const fingerprint =
    options.input === undefined ? null : fingerprintOf(canonicalValue(without(options.input, unstable)), 1)
  const plain = { ...common, fingerprint, plan: null, planFirst: false, windowMs: null, keepsFailures: false }
  const { semantics = 'keyed' } = options
  const verify = 'verify' in options ? (context: StepContext) => options.verify(context) : null
  const acted = async (context: StepContext, _plan: string | null, tx: SqlTx | null) => {
    return run(tx === null ? context : Object.assign(context, { tx }))
  }
  return { kind: 'step', work: { ...plain, semantics, verify, act: acted } }
}

/** Comparisons with NaN are always false: a step would have no end, or no pause. */
function checkLimits(id: string, { attempts = 1, baseMs = 0, capMs = 0 }: RetryPolicy, timeoutMs: number): void {
  checkMs(`The timeoutMs of ${id}`, timeoutMs)
  checkMs(`The baseMs of ${id}`, baseMs)
  checkMs(`The capMs of ${id}`, capMs)
  if (attempts >= 1 && (Number.isSafeInteger(attempts) || attempts === Number.POSITIVE_INFINITY)) return
  throw new OnceError('bad_option', `${id} cannot have ${attempts} attempts: give a whole number from 1, or Infinity.`)
}

export function checkMs(what: string, ms: number): void {
  if (ms >= 0 && ms <= limits.longestMs) return
  throw new OnceError('bad_option', `${what} cannot be ${ms}: give milliseconds from 0 to ${limits.longestMs}.`)
}

type Planned = Omit<StepWork, 'retry' | 'timeoutMs' | 'unstable'>

/** What the provider offers decides what may be repeated. */
function channelWork(
  id: string,
  { channel, unstable = [] }: ChannelOptions<unknown, unknown>,
  evaluate: StepFunction,
): Planned {
  const { offer, verify } = channel
  const { plan, fingerprint } = planOf(id, (evaluate as () => unknown)(), unstable)
  const semantics = offer.kind === 'native' ? 'keyed' : verify === undefined ? 'once' : 'verify'
  const native = offer.kind === 'native' ? offer : null
  return {
    semantics,
    plan,
    fingerprint,
    planFirst: native?.comparesBody === true,
    windowMs: native?.windowMs ?? null,
    keepsFailures: native?.keepsFailures ?? false,
    act: (context, recorded) => channel.send(decodeValue(recorded ?? plan), context),
    verify: verify === undefined ? null : (context, recorded) => verify(decodeValue(recorded ?? plan), context),
  }
}

function plannedWork(id: string, { plan: evaluate, act, ...options }: PlannedStep<unknown, unknown>): Planned {
  const { semantics = 'keyed', unstable = [] } = options
  const { plan, fingerprint } = planOf(id, evaluate(), unstable)
  const fixed = { planFirst: false, windowMs: null, keepsFailures: false, verify: null }
  return {
    ...fixed,
    semantics,
    plan,
    fingerprint,
    act: async (context, recorded) => act(decodeValue(recorded ?? plan), context),
  }
}

/** What a sleep does, so that a replay detects a changed one. */
export function sleepPlan(ms: number): string {
  return JSON.stringify({ ms })
}

/** The plan as it is kept, and as it is compared. */
function planOf(id: string, value: unknown, unstable: readonly string[]): { plan: string; fingerprint: string } {
  const plan = recordedText(`The plan of ${id}`, value)
  const compared = unstable.length === 0 ? plan : recordedText(`The plan of ${id}`, without(value, unstable))
  return { plan, fingerprint: fingerprintOf(compared, 1) }
}

function needed(id: string, act: StepFunction | undefined): StepFunction {
  if (typeof act === 'function') return act
  throw new OnceError('bad_option', `The step ${id} has no function.`)
}
