import type { Identity, RecordId } from './core/identity.ts'
import { exceedsBytes, UNIQUE_PREFIX } from './core/identity.ts'
import { defaults, limits } from './core/limits.ts'
import { badOption, checkOptionNames, wholeOption } from './core/option-names.ts'
import type { OnAbandoned, Policy } from './core/record.ts'
import type { Classify } from './core/verdict.ts'
import type { AnyDefinition, EffectKind, Keep, LeasedDefinition, WhileRunning } from './definition.ts'

/** A definition with every default filled in and every option checked. */
export interface Declared {
  readonly definition: AnyDefinition
  readonly name: string
  readonly effect: EffectKind
  readonly policy: Policy
  readonly leaseMs: number
  readonly maxRunMs: number
  readonly whileRunning: WhileRunning
  readonly refuseUnverified: boolean
  readonly keep: Keep
  readonly maxOutcomeBytes: number
  readonly classify: Classify | undefined
  readonly probe: LeasedDefinition<unknown>['probe'] | undefined
}

/** One command: caller, operation, input and key. */
export interface Command {
  readonly identity: Identity
  readonly id: RecordId
  readonly input: unknown
  readonly fingerprints: readonly [string, ...string[]]
  readonly as: unknown
}

export function declare(definition: AnyDefinition): Declared {
  checkOptionNames('`operation`', definition ?? {}, optionNames)
  const { name, effect } = definition ?? {}
  if (typeof name !== 'string' || name.trim() === '') bad('name', 'must be a non-blank string')
  if (exceedsBytes(name, limits.operationNameBytes)) bad('name', `is longer than ${limits.operationNameBytes} bytes`)
  if (name.startsWith(UNIQUE_PREFIX)) bad('name', `must not start with "${UNIQUE_PREFIX}"`)
  if (!['transaction', 'repeatable', 'external'].includes(effect)) {
    bad('effect', "must be 'transaction', 'repeatable' or 'external': no default is right for everyone")
  }
  checkFunctions(definition)
  checkLeased(definition)
  checkKeeping(definition)
  checkShapes(definition)
  checkLimit(definition)
  const leased: Partial<LeasedDefinition<unknown>> = definition.effect === 'transaction' ? {} : definition
  const leaseMs = time('leaseMs', leased.leaseMs ?? defaults.leaseMs, limits.leaseMinMs, limits.leaseMaxMs)
  return {
    definition,
    name,
    effect,
    policy: policyOf(definition, leased),
    leaseMs,
    maxRunMs: time('maxRunMs', leased.maxRunMs ?? Math.max(defaults.maxRunMs, leaseMs), leaseMs),
    whileRunning: whileRunningOf(definition.whileRunning),
    refuseUnverified: definition.unverified === 'refuse',
    keep: definition.keep ?? 'response',
    maxOutcomeBytes: time(
      'maxOutcomeBytes',
      definition.maxOutcomeBytes ?? defaults.outcomeBytes,
      0,
      defaults.outcomeBytes,
    ),
    classify: leased.classify,
    probe: leased.probe,
  }
}

function bad(option: string, what: string): never {
  return badOption('Operation', option, what)
}

function time(option: string, value: number, least: number, most?: number): number {
  return wholeOption('Operation', option, value, least, most)
}

const optionNames = [
  'name effect retainMs retainFrom afterExpiry refuseMs fingerprint shape shapes unverified whileRunning maxOutcomeBytes',
  'authorize perKeyLimit keep sensitive pointer rebuild leaseMs maxRunMs unknownMs onAbandoned probe classify',
].flatMap((names) => names.split(' '))

const functionNames = new Set(['fingerprint', 'authorize', 'pointer', 'rebuild', 'probe', 'classify'])

const leasedNames = ['leaseMs', 'maxRunMs', 'unknownMs', 'onAbandoned', 'probe', 'classify']

/** Types refuse them; a caller without types would wait for what never happens. */
function checkLeased(definition: AnyDefinition): void {
  if (definition.effect !== 'transaction') return
  const given: Readonly<Record<string, unknown>> = { ...definition }
  const wrong = leasedNames.find((name) => given[name] !== undefined)
  if (wrong !== undefined) bad(wrong, "is for effects with a lease ('repeatable', 'external'): a transaction has none")
}

function checkFunctions(definition: AnyDefinition): void {
  for (const [name, value] of Object.entries(definition)) {
    if (functionNames.has(name) && value !== undefined && typeof value !== 'function') bad(name, 'must be a function')
  }
}

function checkLimit({ perKeyLimit }: AnyDefinition): void {
  if (perKeyLimit === undefined) return
  time('perKeyLimit.attempts', perKeyLimit?.attempts, 1)
  time('perKeyLimit.perMs', perKeyLimit?.perMs, 1, limits.longestMs)
}

/**
 * A claim of a transaction is committed with its outcome. One that stands without it was committed by other code, and so
 * were some writes of its effect: the outcome is unknown.
 */
const onAbandonedOf: Record<EffectKind, OnAbandoned> = { transaction: 'hold', repeatable: 'rerun', external: 'hold' }

function policyOf(definition: AnyDefinition, leased: Partial<LeasedDefinition<unknown>>): Policy {
  const { effect, afterExpiry = 'new' } = definition
  if (afterExpiry !== 'new' && afterExpiry !== 'refuse') bad('afterExpiry', "must be 'new' or 'refuse'")
  if (definition.refuseMs !== undefined && afterExpiry === 'new') bad('refuseMs', "needs afterExpiry: 'refuse'")
  const { retainFrom = 'settled' } = definition
  if (retainFrom !== 'settled' && retainFrom !== 'claimed') bad('retainFrom', "must be 'settled' or 'claimed'")
  const retainMs = time('retainMs', definition.retainMs ?? defaults.retainMs, 1, limits.longestMs)
  const onAbandoned = leased.onAbandoned ?? (leased.probe === undefined ? onAbandonedOf[effect] : 'probe')
  if (!['rerun', 'hold', 'probe', 'hold_attached'].includes(onAbandoned)) {
    bad('onAbandoned', "must be 'rerun', 'hold', 'hold_attached' or 'probe'")
  }
  if (onAbandoned === 'probe' && leased.probe === undefined) bad('onAbandoned', "'probe' needs a `probe` function")
  return {
    onAbandoned,
    retainMs,
    ...(retainFrom === 'claimed' ? { retainFrom } : {}),
    refuseMs: afterExpiry === 'refuse' ? time('refuseMs', definition.refuseMs ?? retainMs, 1, limits.longestMs) : 0,
    unknownMs: time('unknownMs', leased.unknownMs ?? defaults.unknownMs, 1, limits.longestMs),
  }
}

function whileRunningOf(whileRunning: WhileRunning | undefined): WhileRunning {
  if (whileRunning === undefined) return { waitMs: defaults.waitMs }
  if (whileRunning === 'conflict' || whileRunning === 'accept') return whileRunning
  if (typeof whileRunning !== 'object' || whileRunning === null)
    bad('whileRunning', "must be { waitMs }, 'conflict' or 'accept'")
  return { waitMs: time('whileRunning.waitMs', whileRunning.waitMs, 0, limits.waitMaxMs) }
}

function checkKeeping(definition: AnyDefinition): void {
  const { keep = 'response', sensitive = false, authorize } = definition
  if (!['response', 'pointer', 'outcome'].includes(keep)) bad('keep', "must be 'response', 'pointer' or 'outcome'")
  if (keep === 'pointer' && typeof (definition as { rebuild?: unknown }).rebuild !== 'function')
    bad('rebuild', "must be a function when keep is 'pointer'")
  if (sensitive && keep === 'response') bad('sensitive', "allows only keep: 'pointer' or 'outcome'")
  if (sensitive && authorize === undefined) bad('authorize', 'must be given for a sensitive operation')
}

export const FIRST_SHAPE = 1

function checkShapes(definition: AnyDefinition): void {
  const { shape = FIRST_SHAPE, shapes = {}, unverified = 'replay' } = definition
  time('shape', shape, FIRST_SHAPE)
  if (typeof shapes !== 'object' || Object.values(shapes).some((form) => typeof form !== 'function')) {
    bad('shapes', 'must hold functions under their numbers')
  }
  if (unverified !== 'replay' && unverified !== 'refuse') bad('unverified', "must be 'replay' or 'refuse'")
  if (Object.hasOwn(shapes, shape)) bad('shapes', `holds old forms only, and ${shape} is the current one`)
}
