import { isDeepStrictEqual } from 'node:util'
import { decodeValue } from '../../src/ledger/core/codec.ts'
import type { ClaimId, Fence } from '../../src/ledger/core/identity.ts'
import { limits } from '../../src/ledger/core/limits.ts'
import type { Failure } from '../../src/ledger/core/verdict.ts'
import type { Life, Recorded, RunningEffect } from './life.ts'
import { recordText } from './life.ts'
import type { Kind } from './scenario.ts'

/** An effect begins: the moment that all the rest exists for. */
export interface Begin {
  readonly life: Life
  readonly effect: RunningEffect
  readonly claimId: ClaimId
  readonly incarnation: Fence
  /** Null when the lease was over before anything began. */
  readonly effectKey: string | null
  /** When the call that brought this effect began. */
  readonly calledMs: number
  readonly now: number
}

export type BeginRule = (begin: Begin) => string | null

/** Effects whose end is unknown are not repeated, unless it is known that they did not happen. */
const held: ReadonlySet<Kind> = new Set(['hold', 'not_found', 'prevented', 'attached'])

function nothingRunsAfterAnOutcome({ life, effect, now }: Begin): string | null {
  const known = life.outcomes.find(({ fromMs, untilMs }) => fromMs <= now && now < untilMs)
  if (known === undefined) return null
  return `the effect began under fence ${effect.attempt.fence}, and ${known.state} is recorded under ${known.fence}`
}

function heldEffectsBeginOnce({ life, effect, incarnation }: Begin): string | null {
  if (!held.has(life.command.operation.kind) || life.revoked.has(effect.attempt.fence)) return null
  const earlier = life.mayHaveRun.get(incarnation)
  if (earlier === undefined) return null
  return `the effect of incarnation ${incarnation} began under fence ${earlier}, and again under ${effect.attempt.fence}`
}

/** Intent is durable before the effect begins, so that a crash can be distinguished from "never started". */
function intentIsRecorded({ life, effect }: Begin): string | null {
  const { attempt } = effect
  if (life.command.operation.kind === 'transaction' || life.revoked.has(attempt.fence)) return null
  const { last } = life
  if (last?.state === 'in_progress' && last.fence === attempt.fence && last.started) return null
  return `the effect began under fence ${attempt.fence}, and the record is ${recordText(last)}`
}

function effectKeyStays({ life, incarnation, effectKey }: Begin): string | null {
  const known = life.effectKeys.get(incarnation)
  if (known === undefined || effectKey === null || known === effectKey) return null
  return `incarnation ${incarnation} had the effect key ${known} and now has ${effectKey}`
}

/**
 * In one process a twin shares the attempt that ran when it came, also its retryable failure, while its lease holds.
 */
function twinStartsNothing({ life, effect, calledMs }: Begin): string | null {
  if (!effect.joins) return null
  for (const other of life.running) {
    if (other === effect || !other.joins || other.process !== effect.process) continue
    if (other.ended?.retryable !== true || !other.ended.inTime) continue
    if (other.startedMs < calledMs && calledMs < other.ended.atMs) {
      return `${effect.call} came while ${other.call} ran in its process, and ran the failed attempt again`
    }
  }
  return null
}

/** A joiner shares the fate of the attempt that it joined, also its retryable failure, and starts none itself. */
function joinerStartsNothing({ life, effect, claimId }: Begin): string | null {
  const failed = life.follows.get(effect.attempt.fence)
  if (!effect.joins || failed === undefined || life.joined.get(claimId) !== failed) return null
  return `${effect.call} waited for fence ${failed}, and ran the failed attempt again`
}

/** Past the holder's own deadline nothing is begun any more. */
function leaseIsChecked({ effect, effectKey }: Begin): string | null {
  return effectKey === null ? `the effect began under fence ${effect.attempt.fence} after its lease` : null
}

export const beginRules: readonly BeginRule[] = [
  nothingRunsAfterAnOutcome,
  heldEffectsBeginOnce,
  intentIsRecorded,
  leaseIsChecked,
  effectKeyStays,
  twinStartsNothing,
  joinerStartsNothing,
]

/** A holder that may still act is the owner of the record: no other holder has it, and it has not lapsed. */
export function holderIsRight(life: Life, fence: Fence): string | null {
  const { last } = life
  if (life.revoked.has(fence) || (last?.state === 'in_progress' && last.fence === fence)) return null
  return `the holder of fence ${fence} may act, and the record is ${recordText(last)}`
}

/** When a lease is granted, no other running holder believes that it has one. */
export function noOtherHolderBelieves(life: Life, fence: Fence): string | null {
  // A transaction that the store has ended is protected by the store itself; its process learns of it later.
  if (life.command.operation.kind === 'transaction') return null
  for (const { attempt, process, ended, host } of life.running) {
    if (ended !== null || process.crashed || process.paused) continue
    if (attempt.fence >= fence || life.revoked.has(attempt.fence)) continue
    if (believes(attempt)) return `fence ${fence} was granted while ${host} still acts under fence ${attempt.fence}`
  }
  return null
}

/** An effect whose transaction failed, as its process knows, does not continue in it. */
export function endIsTold(life: Life, fences: readonly Fence[]): string | null {
  for (const { attempt, process, ended, host } of life.running) {
    if (ended !== null || process.crashed || !fences.includes(attempt.fence)) continue
    if (believes(attempt)) return `${host} still acts under fence ${attempt.fence}, whose transaction has failed`
  }
  return null
}

/** Whether it would still derive keys for other systems. */
export function believes(attempt: { derive(name: string): string }): boolean {
  try {
    return attempt.derive('call') !== ''
  } catch {
    return false
  }
}

/** What a caller got: a value, or a recorded failure. */
export type Reported =
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: 'failure'; readonly failure: Failure }

export interface Answer {
  readonly life: Life
  readonly fingerprint: string
  readonly calledMs: number
  readonly now: number
  readonly reported: Reported
  /** What stands behind a pointer. */
  behind(pointer: string): unknown
}

/** The local cache may be this old, by a clock that may be a little slow. */
const CACHE_MS = limits.replayCacheMs * 1.1

/**
 * Every answer to a caller was on record during its call, for its payload: so all answers to one command are equal, none is
 * invented, and none is older than the cache may be.
 */
export function answersAreOnRecord({
  life,
  fingerprint,
  calledMs,
  now,
  reported: what,
  behind,
}: Answer): string | null {
  const during = life.outcomes.filter(
    (each) => each.fromMs <= now && each.untilMs > calledMs - CACHE_MS && each.fingerprint === fingerprint,
  )
  if (during.some((each) => says(each, what, behind))) return null
  const texts = during.map(({ state, fence, outcome }) => `${state} under ${fence}: ${outcome.data}`)
  const given = JSON.stringify(what.kind === 'value' ? what.value : what.failure)
  return `a caller got the ${what.kind} ${given}, on record was ${texts.join('; ') || 'nothing'}`
}

function says({ state, outcome, pointer }: Recorded, what: Reported, behind: Answer['behind']): boolean {
  if (what.kind === 'failure') {
    return (
      state === 'failed_terminal' && outcome.data !== null && isDeepStrictEqual(decodeValue(outcome.data), what.failure)
    )
  }
  if (state !== 'succeeded') return false
  if (outcome.kept === 'pointer') {
    return pointer !== null && what.value !== undefined && isDeepStrictEqual(behind(pointer.id), what.value)
  }
  if (outcome.kept === 'outcome') return true
  return outcome.data !== null && isDeepStrictEqual(decodeValue(outcome.data), what.value)
}
