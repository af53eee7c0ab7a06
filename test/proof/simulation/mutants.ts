import { SECOND } from '../../../src/ledger/core/limits.ts'
import type { Mutant } from './mutate.ts'

/** Every protective rule of the claim → execute → record path, removed one at a time. */

type Rule = Omit<Mutant, 'file'>

const claim: readonly Rule[] = [
  {
    name: 'a running lease is taken for a lapsed one',
    find: 'if (hasLapsed(record, at.now)) return sameCommand',
    replace: 'if (true) return sameCommand',
  },
  {
    name: 'our own claim, whose acknowledgement we lost, is taken for a rival',
    find: 'if (record.claimId === request.claimId) return ownClaim',
    replace: 'if (false) return ownClaim',
  },
  {
    name: 'a reused key is not noticed',
    find: "if (match === 'different' || (match === 'unverified' && request.refuseUnverified === true)) {",
    replace: 'if (false) {',
  },
  {
    name: 'expiry is not looked at',
    find: "if (record.expiresAt <= at.now) return { record, decision: { kind: 'key_expired'",
    replace: "if (false) return { record, decision: { kind: 'key_expired'",
  },
  { name: 'the time to come back is not kept', find: 'at.now >= record.retryAt && ', replace: '' },
  {
    name: 'a late copy of a settled claim is granted',
    find: 'at.now >= record.retryAt && record.claimId !== request.claimId',
    replace: 'at.now >= record.retryAt',
    focus: { weather: { twice: 0.25 } },
  },
  {
    name: 'a late copy of a claim that was given back is granted',
    find: "if (record.claimId === request.claimId) {\n    return { record, decision: { kind: 'retry_later'",
    replace: "if (false) {\n    return { record, decision: { kind: 'retry_later'",
  },
  {
    name: 'a reclaim does not raise the fence',
    find: 'fence: at.fence,\n    claimId: request.claimId,\n    attempts: previous.attempts + 1,',
    replace: 'claimId: request.claimId,\n    attempts: previous.attempts + 1,',
  },
  {
    name: 'every attempt has effect keys of its own',
    find: 'attempts: previous.attempts + 1,',
    replace: 'attempts: previous.attempts + 1, incarnation: at.fence,',
  },
  { name: 'effect keys survive a forget', find: 'record.forgotten || ', replace: '' },
  {
    name: 'an unknown outcome is run again',
    find: "decision: { kind: 'outcome_unknown', since: record.since, attempts: record.attempts, verified },\n      }",
    replace: '...again(record, request, at, verified),\n      }',
  },
]

const holder: readonly Rule[] = [
  { name: 'a holder is not asked for its fence', find: 'record.fence === holder.fence && ', replace: '' },
  {
    name: 'a late loser overwrites its successor',
    find: 'if (!owns(record, request.grant)) return superseded(record, request, at)',
    replace: '',
  },
  {
    name: 'a settled outcome can be settled anew',
    find: "    case 'succeeded':\n    case 'failed_terminal':\n      return { record, decision: applied }",
    replace:
      "    case 'succeeded':\n    case 'failed_terminal':\n      return { record: settledFrom(record, request, at), decision: applied }",
  },
  {
    name: 'a late settle brings an expired record back',
    find: 'if (at.now >= grant.claimedAt + Math.min(grant.policy.retainMs, limits.vacantMs)) return lost(null)',
    replace: '',
    focus: { nightShare: 0.8 },
  },
  {
    name: 'any process may give a claim back',
    find: ' || record.claimId !== request.claimId) return lost',
    replace: ') return lost',
  },
  {
    name: 'giving back leaves the fence as it was',
    find: 'history, fence: at.fence, awaited: false }\n  return { record: after, decision: applied }',
    replace: 'history, awaited: false }\n  return { record: after, decision: applied }',
  },
]

const time: readonly Rule[] = [
  {
    name: 'the grace is not waited for',
    find: 'record.leaseUntil + limits.leaseGraceMs <= now',
    replace: 'record.leaseUntil <= now',
  },
  { name: 'what lapses is always free', find: 'if (record.started && !free) {', replace: 'if (false) {' },
  { name: 'a lapsed reservation counts as started', find: 'if (record.started && !free) {', replace: 'if (!free) {' },
  {
    name: 'an attached pointer blocks no claim',
    find: "(onAbandoned === 'hold_attached' && record.pointer === null)",
    replace: "onAbandoned === 'hold_attached'",
  },
  { name: 'retention is half as long', find: 'from + policy.retainMs)', replace: 'from + policy.retainMs / 2)' },
  {
    name: 'a window counts from settling',
    find: "const from = policy.retainFrom === 'claimed' ? claimedAt : now",
    replace: 'const from = now + 0 * claimedAt',
  },
]

const operator: readonly Rule[] = [
  {
    name: 'two may probe at once',
    find: 'if (held !== null && !own && at.now < held.until + limits.leaseGraceMs)',
    replace: 'if (false)',
  },
  {
    name: 'a probe that lost its turn may resolve',
    find: 'if (request.probeFence !== null && current.probe?.fence !== request.probeFence)',
    replace: 'if (false)',
    focus: { kinds: ['not_found', 'prevented'], leaseMs: 30 * SECOND, pauses: 6, weather: { pause: 0.05 } },
  },
  {
    name: "an operator's resolve leaves the fence as it was",
    find: 'const over = { history, fence: at.fence, awaited',
    replace: 'const over = { history, awaited',
  },
  {
    name: "an operator's fence is not compared",
    find: 'if (request.ifFence !== null && record.fence !== request.ifFence) {',
    replace: 'if (false) {',
    focus: { acts: 12 },
  },
  {
    name: 'a forget leaves the fence as it was',
    find: "history, fence: at.fence, awaited: false }\n  return { record: after, decision: { kind: 'done' } }",
    replace: "history, awaited: false }\n  return { record: after, decision: { kind: 'done' } }",
  },
  {
    name: 'a business value goes to every claim',
    find: 'if (owner === request.owner) return',
    replace: 'if (owner !== null) return',
  },
  {
    name: 'an unknown outcome is given up at once',
    find: "if (record?.state === 'unknown' && record.abandonAt <= at.now) {",
    replace: "if (record?.state === 'unknown') {",
  },
]

const store: Mutant[] = [
  {
    name: 'the sweep takes what is not over',
    file: 'src/ledger/stores/memory/upkeep.ts',
    find: 'goneAt !== null && goneAt <= now',
    replace: 'goneAt !== null',
  },
  {
    name: 'the sweep empties what is still replayed',
    file: 'src/ledger/stores/memory/upkeep.ts',
    find: 'if (record.expiresAt <= now && record.outcome.data !== null) {',
    replace: 'if (record.outcome.data !== null) {',
  },
  {
    name: 'a failed savepoint is kept',
    file: 'src/ledger/store/savepoints.ts',
    find: 'steps.undo()',
    replace: 'steps.keep()',
  },
  {
    name: 'two transactions write at once',
    file: 'src/ledger/stores/memory/writer.ts',
    find: 'if (busy) await turnOf(turn)',
    replace: '',
  },
]

const ledger: Mutant[] = [
  {
    name: "the holder's deadline is looked at only by a timer",
    file: 'src/ledger/store/held-leases.ts',
    find: 'if (this.leases.nowMs() >= this.deadlineMs) this.leases.end(this, null)',
    replace: '',
  },
  {
    name: 'a lease counts from the answer to its claim',
    file: 'src/ledger/lead.ts',
    find: 'grantLease(context, op, flight, decision.lease, lead.heldFrom)',
    replace: 'grantLease(context, op, flight, decision.lease, context.heart.nowMs())',
    focus: { kinds: ['repeatable', 'rerun'], leaseMs: 5 * SECOND, partitions: 4, weather: { stuck: 0.3 } },
  },
  {
    name: 'an effect begins although its lease is over',
    file: 'src/ledger/effect.ts',
    find: 'if (over === null) return attempt',
    replace: 'return attempt',
  },
  {
    name: 'a joiner runs the failed attempt again',
    file: 'src/ledger/lead.ts',
    find: "(record.state === 'failed_retryable' && record.lapsed)",
    replace: "record.state === 'failed_retryable'",
  },
  {
    name: 'twins of one process run the failed attempt again',
    file: 'src/ledger/begin.ts',
    find: "if (landing.kind !== 'released') return",
    // But not where it is still running, which would be asked forever.
    replace:
      "if (landing.kind !== 'released' && (landing.kind !== 'refused' || landing.error.code === 'in_progress')) return",
  },
  {
    name: 'a failure to record looks like a failed effect',
    file: 'src/ledger/effect.ts',
    find: 'decision.then((known) => landingOf(attempt, word, to, named, known))',
    replace:
      "decision.then((known) => known === null && word.kind === 'succeeded' ? settleLease(context, attempt, { kind: 'unknown', error: new Error('not recorded') }) : landingOf(attempt, word, to, named, known))",
  },
  {
    name: 'any error is taken for "nothing happened"',
    file: 'src/ledger/effect.ts',
    find: "const proven = isVerdict(thrown) || op.effect === 'repeatable' || provesNotDone(op.classify, thrown)",
    replace: 'const proven = true',
  },
  {
    name: 'the cache never ages',
    file: 'src/ledger/cache.ts',
    find: 'runtime.monotonicMs() < entry.freshUntil',
    replace: 'true',
  },
  {
    name: 'a late answer is kept as if it were fresh',
    file: 'src/ledger/cache.ts',
    find: 'freshUntil: askedAt + freshMs',
    replace: 'freshUntil: runtime.monotonicMs() + freshMs + 0 * askedAt',
    focus: { acts: 12, weather: { stuck: 0.3, pause: 0.05 } },
  },
  {
    name: '"not found" is believed while the effect may be under way',
    file: 'src/ledger/probe.ts',
    find: 'if (now >= grant.claimedAt + op.maxRunMs + limits.leaseGraceMs) return',
    replace: 'if (now >= 0) return',
    focus: { kinds: ['not_found'] },
  },
  {
    name: 'a probe loses the pointer of the result',
    file: 'src/ledger/probe.ts',
    find: "return { kind: 'succeeded', outcome, pointer }",
    replace: "return { kind: 'succeeded', outcome }",
  },
  {
    name: 'lapsed leases are not looked for',
    file: 'src/ledger/reconcile.ts',
    find: 'await Promise.all(rows.map(reconcile))',
    replace: '',
    focus: { weather: { crash: 0.02 } },
  },
  {
    name: 'an effect is not aborted when its transaction ends',
    file: 'src/ledger/transact.ts',
    find: '      turn.end()\n',
    replace: '',
  },
  {
    name: 'the outcome of a transaction is not written in it',
    file: 'src/ledger/transact.ts',
    find: 'await settleInside(session, grant, succeeded, packed.pointer)',
    replace: '',
  },
]

const inFile = (file: string, rules: readonly Rule[]) => rules.map((rule): Mutant => ({ ...rule, file }))

export const coreMutants: readonly Mutant[] = [
  ...inFile('src/ledger/core/transition.ts', claim),
  ...inFile('src/ledger/core/transition.ts', holder),
  ...inFile('src/ledger/core/transition-parts.ts', time),
  ...inFile('src/ledger/core/transition-operator.ts', operator),
]

export const ledgerMutants: readonly Mutant[] = [...store, ...ledger]
