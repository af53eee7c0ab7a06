import type { LedgerRecord } from '../../../src/ledger/core/record.ts'
import type { Decision, Request } from '../../../src/ledger/core/request.ts'
import type { Moment, Step } from '../../../src/ledger/core/transition.ts'
import { transition } from '../../../src/ledger/core/transition.ts'
import type { AppliedDecision, Claims, Store, TransactionalStore } from '../../../src/ledger/store/port.ts'
import { assemble } from '../../../src/ledger/stores/memory/assemble.ts'
import { createWatchers } from '../../../src/ledger/stores/memory/watch.ts'
import type { Awaitable } from '../../../src/runtime/runtime.ts'

/**
 * Stores that are wrong on purpose, each in one way that real stores were wrong before. The kit must fail on every one of
 * them; a kit that does not is worth nothing.
 */
export interface BrokenStore {
  readonly name: string
  open(): Promise<{ store: Store; close(): Promise<void> }>
}

type Rule = (stored: LedgerRecord | null, request: Request, at: Moment) => Step

/** A tiny store that runs a given rule over a map, one request at a time. */
function storeOf(rule: Rule, bend: (claims: Claims) => Claims = (claims) => claims): TransactionalStore<unknown> {
  const base = assemble({ testClock: true }, { machine: rule as typeof transition, watchers: createWatchers() })
  return { ...base, claims: bend(base.claims) } as TransactionalStore<unknown>
}

function broken(name: string, rule: Rule, bend?: (claims: Claims) => Claims): BrokenStore {
  return {
    name,
    open: async () => {
      const store = storeOf(rule, bend)
      return { store, close: () => store.stop() }
    },
  }
}

const right: Rule = (stored, request, at) => transition(stored, request, at)

/** The rule is followed, and then one thing about its result is undone. */
function after(change: (step: Step, stored: LedgerRecord | null, request: Request, at: Moment) => Step): Rule {
  return (stored, request, at) => change(right(stored, request, at), stored, request, at)
}

/** The rule is asked a slightly different question. */
function asking(change: (stored: LedgerRecord | null, request: Request, at: Moment) => Parameters<Rule>): Rule {
  return (stored, request, at) => right(...change(stored, request, at))
}

const pause = () => new Promise((resolve) => setTimeout(resolve, 1))

/** Reads first and writes afterwards: concurrent readers in between find nothing. */
function findThenInsert(claims: Claims): Claims {
  const seen = new Map<string, AppliedDecision<Decision>>()
  return {
    ...claims,
    async apply(request, call) {
      const { records } = await claims.read([request.id], call)
      await pause()
      const answer = await claims.apply(request, call)
      if (request.kind !== 'claim' || records[0] !== null) return answer
      // It found nothing, so it trusts its own insert, even when another claim was faster.
      const first = seen.get(request.id)
      if (first === undefined) seen.set(request.id, answer)
      return (first ?? answer) as typeof answer
    },
  }
}

/** Gives each request the answer of another that came in the same moment. */
function swapAnswers(claims: Claims): Claims {
  let together: Awaitable<AppliedDecision>[] = []
  return {
    ...claims,
    async apply(request, call) {
      const answers = together
      const own = claims.apply(request, call)
      const place = answers.push(own) - 1
      await pause()
      together = []
      return (await (answers[answers.length - 1 - place] ?? own)) as Awaited<typeof own>
    },
  }
}

export const brokenStores: readonly BrokenStore[] = [
  broken(
    'no fence: any holder of the claim id may settle',
    asking((stored, request, at) =>
      request.kind === 'settle' && stored !== null
        ? [stored, { ...request, grant: { ...request.grant, fence: stored.fence } }, at]
        : [stored, request, at],
    ),
  ),
  broken(
    'no owner check: any settle is the owner’s',
    asking((stored, request, at) =>
      request.kind === 'settle' && stored !== null
        ? [stored, { ...request, grant: { ...request.grant, fence: stored.fence, claimId: stored.claimId } }, at]
        : [stored, request, at],
    ),
  ),
  broken(
    'heartbeats without an owner check',
    asking((stored, request, at) =>
      request.kind === 'renew' && stored !== null
        ? [stored, { ...request, fence: stored.fence, claimId: stored.claimId }, at]
        : [stored, request, at],
    ),
  ),
  broken('find, then insert', right, findThenInsert),
  broken(
    'expiry ignored',
    asking((stored, request, at) => [stored, request, { ...at, now: 0 }]),
  ),
  broken(
    'an expired record is swept, not decided',
    asking((stored, request, at) =>
      stored !== null && 'goneAt' in stored
        ? [
            {
              ...stored,
              goneAt: Number.MAX_SAFE_INTEGER,
              ...('expiresAt' in stored ? { expiresAt: Number.MAX_SAFE_INTEGER } : {}),
            } as LedgerRecord,
            request,
            at,
          ]
        : [stored, request, at],
    ),
  ),
  broken(
    'a lease that never lapses',
    asking((stored, request, at) =>
      stored?.state === 'in_progress' && request.kind !== 'renew'
        ? [{ ...stored, leaseUntil: Number.MAX_SAFE_INTEGER - 10_000 }, request, at]
        : [stored, request, at],
    ),
  ),
  broken(
    'a lease that lapses without its grace',
    asking((stored, request, at) =>
      stored?.state === 'in_progress' && request.kind === 'claim'
        ? [{ ...stored, leaseUntil: stored.leaseUntil - 5_000 }, request, at]
        : [stored, request, at],
    ),
  ),
  broken(
    'a lease as long as retention',
    asking((stored, request, at) =>
      request.kind === 'claim' ? [stored, { ...request, leaseMs: request.policy.retainMs }, at] : [stored, request, at],
    ),
  ),
  broken(
    'another payload overwrites the good record',
    after((step, _stored, request, at) =>
      request.kind === 'claim' && step.decision.kind === 'key_reused' ? right(null, request, at) : step,
    ),
  ),
  broken(
    'another payload is only noticed when the record is settled',
    asking((stored, request, at) =>
      request.kind === 'claim' && stored?.state === 'in_progress'
        ? [{ ...stored, fingerprint: request.fingerprints[0] }, request, at]
        : [stored, request, at],
    ),
  ),
  broken(
    'our own claim is taken for a rival',
    asking((stored, request, at) =>
      request.kind === 'claim' && stored?.claimId === request.claimId
        ? [stored, { ...request, claimId: 'f'.repeat(32) }, at]
        : [stored, request, at],
    ),
  ),
  broken(
    'reclaiming does not raise the fence',
    after((step, stored, request) => {
      if (request.kind !== 'claim' || step.decision.kind !== 'reclaimed' || step.record === null || stored === null)
        return step
      const { fence } = stored
      return {
        record: { ...step.record, fence },
        decision: { ...step.decision, lease: { ...step.decision.lease, fence } },
      }
    }),
  ),
  broken(
    'a lapsed external effect runs again',
    asking((stored, request, at) =>
      stored?.state === 'in_progress'
        ? [{ ...stored, policy: { ...stored.policy, onAbandoned: 'rerun' } }, request, at]
        : [stored, request, at],
    ),
  ),
  broken(
    'a reservation that lapsed counts as started',
    asking((stored, request, at) =>
      stored?.state === 'in_progress' ? [{ ...stored, started: true }, request, at] : [stored, request, at],
    ),
  ),
  broken(
    'a late settle is refused by time',
    after((step, stored, request, at) =>
      request.kind === 'settle' && stored?.state === 'unknown' && at.now > stored.since - 1
        ? { record: stored, decision: { kind: 'lease_lost', state: 'unknown', conflict: false } }
        : step,
    ),
  ),
  broken(
    'forget deletes the row',
    after((step, _stored, request) =>
      request.kind === 'forget' && step.decision.kind === 'done'
        ? { ...step, record: { ...(step.record as LedgerRecord), goneAt: 0 } as LedgerRecord }
        : step,
    ),
  ),
  broken(
    'release leaves no trace',
    after((step, _stored, request) =>
      request.kind === 'release' && step.record !== null
        ? { ...step, record: { ...step.record, claimId: '0'.repeat(32) } }
        : step,
    ),
  ),
  broken(
    'incarnations change with every attempt',
    after((step, _stored, request) => {
      if (request.kind !== 'claim' || step.decision.kind !== 'reclaimed' || step.record === null) return step
      const incarnation = step.record.fence
      return {
        record: { ...step.record, incarnation },
        decision: { ...step.decision, lease: { ...step.decision.lease, incarnation } },
      }
    }),
  ),
  broken(
    'a retryable failure is retried at once',
    asking((stored, request, at) =>
      stored?.state === 'failed_retryable' ? [{ ...stored, retryAt: 0 }, request, at] : [stored, request, at],
    ),
  ),
  broken(
    'probes of two processes at once',
    asking((stored, request, at) =>
      stored?.state === 'unknown' && request.kind === 'probe'
        ? [{ ...stored, probe: null, probeAt: 0 }, request, at]
        : [stored, request, at],
    ),
  ),
  broken(
    'resolve ignores the fence that was looked at',
    asking((stored, request, at) =>
      request.kind === 'resolve' ? [stored, { ...request, ifFence: null }, at] : [stored, request, at],
    ),
  ),
  broken(
    'a unique value is free again after a while',
    after((step, _stored, request, at) =>
      request.kind === 'unique' && step.record !== null
        ? { ...step, record: { ...step.record, goneAt: at.now + 60_000 } as LedgerRecord }
        : step,
    ),
  ),
  broken('waiters are never woken', right, (claims) => ({
    ...claims,
    watch: () => ({ ready: Promise.resolve(), stop() {} }),
  })),
  broken('a request gets the answer of another', right, swapAnswers),
  broken('a call takes as long as it takes', right, (claims) => ({
    ...claims,
    apply: (request) => claims.apply(request, { timeoutMs: 60_000 }),
  })),
]
