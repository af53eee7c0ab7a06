import type { Fence, RecordId } from '../../src/ledger/core/identity.ts'
import { recordIdOf } from '../../src/ledger/core/identity.ts'
import { limits } from '../../src/ledger/core/limits.ts'
import type { LedgerRecord } from '../../src/ledger/core/record.ts'
import type { Decision, Grant, Request } from '../../src/ledger/core/request.ts'
import { transition } from '../../src/ledger/core/transition.ts'
import type { AppliedDecision } from '../../src/ledger/store/port.ts'
import type { Parts } from '../../src/ledger/stores/memory/assemble.ts'
import { createWatchers } from '../../src/ledger/stores/memory/watch.ts'
import type { Life, RunningEffect, Seen } from './life.ts'
import { createLife, isGrant, recordText, standingAt } from './life.ts'
import type { Answer } from './rules-effect.ts'
import {
  answersAreOnRecord,
  beginRules,
  believes,
  endIsTold,
  holderIsRight,
  noOtherHolderBelieves,
} from './rules-effect.ts'
import { transitionRules } from './rules-transition.ts'
import type { CommandPlan } from './scenario.ts'
import type { Trace } from './trace.ts'

/** Sees every change of every record in the moment in which it is made, and every effect, and knows the rules. */
export interface Witness {
  readonly lives: ReadonlyMap<RecordId, Life>
  lifeOf(command: CommandPlan): Life
  /** The parts of a memory store that the witness watches. */
  watch(): Parts
  inSession<T>(apply: () => T): T
  /** A transaction begins: whatever an earlier one left behind was rolled back. */
  beginTransaction(): void
  heard(request: Request, applied: AppliedDecision): void
  grantOf(fence: Fence): Grant | undefined
  begin(life: Life, effect: RunningEffect, calledMs: number): void
  /** The effect leaves the process: from here on it may happen. */
  goesOut(life: Life, effect: RunningEffect): void
  /** The holder is about to do something that only a holder may. */
  act(life: Life, effect: RunningEffect): void
  answer(answer: Omit<Answer, 'now'>): void
  /** A process learnt that its transaction failed: the effects in it have learnt it too. */
  transactionFailed(fences: readonly Fence[]): void
  /** The store lost everything: what it knew does not bind it any more. */
  reset(): void
}

export interface WitnessParts {
  readonly commands: readonly CommandPlan[]
  readonly trace: Trace
  now(): number
  readonly mayLoseRecords: boolean
  /** An outcome became unknown, of an effect that had begun or had not. */
  unknowns(began: boolean): void
}

export function createWitness({ commands, trace, now, mayLoseRecords, unknowns }: WitnessParts): Witness {
  const lives = new Map(commands.map((command) => [idOf(command), createLife(command)]))
  const grants = new Map<Fence, Grant>()
  /** Decisions inside the open transaction, by record: true only once it commits. */
  const staged = new Map<RecordId, Seen[]>()
  let session = false
  let stores = 0

  const check = (rule: string, text: string | null, life: Life) => {
    if (text !== null) trace.fail(rule, `${life.command.name}: ${text}`)
  }

  function see(before: LedgerRecord | null, request: Request, decision: Decision, after: LedgerRecord | null): void {
    const life = lives.get(request.id)
    if (life === undefined) return
    const seen = { life, before, standing: standingAt(before, storeNow()), request, decision, after, now: storeNow() }
    if (!session) return publish(seen)
    staged.set(request.id, [...(staged.get(request.id) ?? []), seen])
  }

  /** The store's clock shows whole milliseconds. */
  const storeNow = () => Math.floor(now())

  function publish(seen: Seen): void {
    const { life, standing, request, decision, after } = seen
    if (after?.state === 'unknown' && standing?.state === 'in_progress') {
      const began = [...life.running].some(({ attempt }) => attempt.fence === after.fence)
      unknowns(began)
    }
    trace.note(`store ${life.command.name} ${describe(request)}: ${decision.kind}, ${recordText(after)}`)
    for (const rule of transitionRules) {
      if (mayLoseRecords && rule.name === 'recordIsNeverLost') continue
      check(rule.name, rule(seen), life)
    }
    if (isGrant(decision) && 'lease' in decision) {
      grants.set(decision.lease.fence, decision.lease)
      if (after !== null && after.fence > life.topFence)
        check('noOtherHolderBelieves', noOtherHolderBelieves(life, after.fence), life)
    }
    learn(seen)
  }

  return {
    lives,
    lifeOf: (command) => lives.get(idOf(command)) as Life,
    watch() {
      const watchers = createWatchers()
      // What a lost store still does has no consequence.
      const own = ++stores
      const machine: Parts['machine'] = (stored, request, at) => {
        const step = transition(stored, request, at)
        if (own === stores) see(stored, request, step.decision, step.record)
        return step
      }
      const changed: Parts['watchers']['changed'] = (before, after) => {
        const id = (after ?? before)?.id
        if (own === stores && id !== undefined) {
          for (const seen of staged.get(id) ?? []) publish(seen)
          staged.delete(id)
        }
        watchers.changed(before, after)
      }
      return { machine, watchers: { ...watchers, changed } }
    },
    inSession(apply) {
      session = true
      try {
        return apply()
      } finally {
        session = false
      }
    },
    beginTransaction: () => staged.clear(),
    heard(request, { decision, record }) {
      if (request.kind !== 'claim' || decision.kind !== 'in_progress' || record === null) return
      lives.get(request.id)?.joined.set(request.claimId, record.fence)
    },
    grantOf: (fence) => grants.get(fence),
    begin(life, effect, calledMs) {
      const { attempt } = effect
      const { incarnation = attempt.fence, claimId = '' } = grants.get(attempt.fence) ?? {}
      const effectKey = keyOf(attempt)
      trace.note(`${effect.host} ${effect.call} effect of ${life.command.name} begins under fence ${attempt.fence}`)
      for (const rule of beginRules) {
        check(rule.name, rule({ life, effect, claimId, incarnation, effectKey, calledMs, now: now() }), life)
      }
      life.running.add(effect)
      if (effectKey !== null) life.effectKeys.set(incarnation, effectKey)
      // An effect that names what it makes before it does anything is harmless until then.
      if (life.command.operation.kind !== 'attached') mayHappen(life, incarnation, attempt.fence)
    },
    goesOut(life, { attempt }) {
      mayHappen(life, grants.get(attempt.fence)?.incarnation ?? attempt.fence, attempt.fence)
    },
    act(life, { attempt }) {
      check('holderIsRight', holderIsRight(life, attempt.fence), life)
    },
    answer(answer) {
      check('answersAreOnRecord', answersAreOnRecord({ ...answer, now: now() }), answer.life)
    },
    transactionFailed(fences) {
      for (const life of lives.values()) check('endIsTold', endIsTold(life, fences), life)
    },
    reset() {
      for (const life of lives.values()) forgetLife(life, storeNow())
      grants.clear()
      staged.clear()
    },
  }
}

function idOf({ operation, parts }: CommandPlan): RecordId {
  return recordIdOf({ ...parts, operation: operation.name })
}

/** What a change means for what is known to have happened. */
function learn({ life, before, standing, request, decision, after, now }: Seen): void {
  life.last = after
  if (after === null || after === before) return
  life.topFence = Math.max(life.topFence, after.fence)
  if (isGrant(decision)) life.givenBack = null
  if (isGrant(decision) && standing?.state === 'failed_retryable' && !standing.lapsed) {
    if (!life.late.has(standing.fence)) life.follows.set(after.fence, standing.fence)
  }
  if (request.kind === 'settle' && standing !== null && hasEnded(standing, now)) life.late.add(standing.fence)
  if (after.state === 'succeeded' || after.state === 'failed_terminal') {
    if (standing?.state !== after.state) {
      const { state, fence, fingerprint, outcome, pointer, expiresAt: untilMs } = after
      life.outcomes.push({ state, fence, fingerprint, outcome, pointer, fromMs: now, untilMs })
    }
  }
  if (request.kind === 'settle' && decision.kind === 'applied' && after.state === 'failed_retryable') {
    // The holder says that nothing happened.
    if (after.fence === request.grant.fence) life.mayHaveRun.delete(after.incarnation)
  }
  if (request.kind === 'release' && decision.kind === 'applied' && after.state === 'vacant') {
    life.givenBack = request.claimId
    // The holder says that it never began.
    if (standing?.state === 'in_progress') life.mayHaveRun.delete(after.incarnation)
  }
  if (request.kind === 'resolve' && decision.kind === 'done' && request.to.kind === 'rerun') {
    life.mayHaveRun.delete(after.incarnation)
    if (request.probeFence === null) excuse(life, after.incarnation)
  }
  if (request.kind === 'forget' && decision.kind === 'done' && standing !== null) {
    life.revoked.add(standing.fence)
    life.mayHaveRun.delete(after.incarnation)
    excuse(life, after.incarnation)
    for (const each of life.outcomes) each.untilMs = Math.min(each.untilMs, now)
  }
}

/** The lease was over by the store's clock, whether or not a process had noticed. */
function hasEnded(record: LedgerRecord, now: number): boolean {
  if (record.state === 'in_progress') return now >= record.leaseUntil + limits.leaseGraceMs
  return record.state === 'failed_retryable' && record.lapsed
}

/** Null when the lease is over: such an effect should not have begun, and then the rules say so. */
function keyOf(attempt: RunningEffect['attempt']): string | null {
  return believes(attempt) ? attempt.effectKey : null
}

/** What begins after an operator took the lease away is the operator's responsibility. */
function mayHappen(life: Life, incarnation: Fence, fence: Fence): void {
  if (!life.revoked.has(fence)) life.mayHaveRun.set(incarnation, fence)
}

function excuse(life: Life, incarnation: Fence): void {
  life.excuses.set(incarnation, (life.excuses.get(incarnation) ?? 0) + 1)
}

function forgetLife(life: Life, now: number): void {
  for (const { attempt } of life.running) life.revoked.add(attempt.fence)
  if (life.last !== null) life.revoked.add(life.last.fence)
  for (const each of life.outcomes) each.untilMs = Math.min(each.untilMs, now)
  life.last = null
  life.topFence = 0
  life.mayHaveRun.clear()
  life.effectKeys.clear()
}

function describe(request: Request): string {
  switch (request.kind) {
    case 'claim':
      return `${request.start ? 'claim' : 'reservation'} ${request.claimId.slice(0, 6)}`
    case 'start':
    case 'renew':
    case 'attach':
      return `${request.kind} of fence ${request.fence}`
    case 'settle':
      return `settle of fence ${request.grant.fence} to ${request.to.state}`
    case 'release':
      return `release ${request.claimId.slice(0, 6)}`
    case 'resolve':
      return `resolve to ${request.to.kind} by ${request.by}`
    case 'forget':
      return request.onlyRunning ? 'release by a person' : 'forget'
    case 'reconcile':
    case 'probe':
    case 'unique':
    case 'replace':
      return request.kind
  }
}
