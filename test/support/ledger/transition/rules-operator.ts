import assert from 'node:assert/strict'
import type { Fence } from '../../../../src/ledger/core/identity.ts'
import { DAY, limits, MINUTE } from '../../../../src/ledger/core/limits.ts'
import type {
  OperatorDecision,
  ProbeDecision,
  Resolution,
  UniqueDecision,
} from '../../../../src/ledger/core/request.ts'
import type { Life } from './life.ts'
import { createLife, done, identity, LEASE_MS, lifeIn, policy, refused, shapeNames } from './life.ts'
import type { Rules } from './rules-claim.ts'

const succeeded: Resolution = { kind: 'succeeded', outcome: { kept: 'response', data: 'found' } }
const failed: Resolution = { kind: 'failed', outcome: { kept: 'response', data: 'no' } }

interface How {
  readonly ifFence?: Fence
  readonly probeFence?: Fence
}

function resolve(life: Life, to: Resolution, { ifFence, probeFence }: How = {}): OperatorDecision {
  const fences = { ifFence: ifFence ?? null, probeFence: probeFence ?? null }
  return life.send({ kind: 'resolve', id: 'r', by: 'ops', ...fences, to })
}

function forget(life: Life, onlyRunning: boolean, ifFence: Fence | null = null): OperatorDecision {
  return life.send({ kind: 'forget', id: 'r', by: 'ops', ifFence, onlyRunning })
}

function probe(life: Life, claimId: string): ProbeDecision {
  return life.send({ kind: 'probe', id: 'r', claimId, leaseMs: LEASE_MS })
}

function granted(decision: ProbeDecision): Fence {
  assert.ok(decision.kind === 'probe_granted', decision.kind)
  return decision.fence
}

export const operatorRules: Rules = {
  'reconciling applies what time has decided, and nothing sooner': (machine) => {
    const { life } = lifeIn(machine, 'running')
    life.pass(LEASE_MS + limits.leaseGraceMs - 1)
    assert.deepEqual(life.send({ kind: 'reconcile', id: 'r' }), { kind: 'unchanged' })
    life.pass(1)
    assert.deepEqual(life.send({ kind: 'reconcile', id: 'r' }), { kind: 'lapsed', to: 'unknown' })
    life.pass(policy.unknownMs - 1)
    assert.deepEqual(life.send({ kind: 'reconcile', id: 'r' }), { kind: 'unchanged' })
    life.pass(1)
    assert.deepEqual(life.send({ kind: 'reconcile', id: 'r' }), { kind: 'abandoned' })
    assert.ok(life.record?.state === 'failed_terminal')
    assert.match(life.record.outcome.data ?? '', /"abandoned_unknown"/)
    assert.equal(life.record.expiresAt, life.now + policy.retainMs)
  },

  'reconciling frees a reservation and a repeatable effect': (machine) => {
    const reserved = lifeIn(machine, 'reserved').life
    reserved.pass(DAY)
    assert.deepEqual(reserved.send({ kind: 'reconcile', id: 'r' }), { kind: 'lapsed', to: 'failed_retryable' })
    const repeatable = createLife(machine)
    repeatable.lease('c1', { policy: { ...policy, onAbandoned: 'rerun' } })
    repeatable.pass(DAY)
    assert.deepEqual(repeatable.send({ kind: 'reconcile', id: 'r' }), { kind: 'lapsed', to: 'failed_retryable' })
  },

  'reconciling leaves everything else alone': (machine) => {
    for (const shape of shapeNames) {
      const { life } = lifeIn(machine, shape)
      const before = life.record
      assert.deepEqual(life.send({ kind: 'reconcile', id: 'r' }), { kind: 'unchanged' }, shape)
      assert.equal(life.record, before, shape)
    }
    assert.deepEqual(createLife(machine).send({ kind: 'reconcile', id: 'r' }), { kind: 'unchanged' })
  },

  'an abandoned outcome has a higher fence, and the late word is a conflict': (machine) => {
    const { life, grant } = lifeIn(machine, 'unknown')
    life.pass(policy.unknownMs)
    life.send({ kind: 'reconcile', id: 'r' })
    assert.ok(life.record !== null && life.record.fence > grant.fence)
    const late = { kind: 'lease_lost', state: 'failed_terminal', conflict: true }
    assert.deepEqual(life.settle(grant, done()), late)
  },

  'an operator resolves an unknown outcome, under a new fence': (machine) => {
    for (const [to, state] of [
      [succeeded, 'succeeded'],
      [failed, 'failed_terminal'],
      [{ kind: 'rerun' }, 'failed_retryable'],
    ] as const) {
      const { life, grant } = lifeIn(machine, 'unknown')
      life.pass(MINUTE)
      assert.deepEqual(resolve(life, to), { kind: 'done' })
      const { record } = life
      assert.equal(record?.state, state)
      assert.ok(record !== null && record.fence > grant.fence)
      assert.ok('expiresAt' in record && record.expiresAt === life.now + policy.retainMs)
      assert.equal(record.history.at(-1)?.what, 'resolved')
      assert.equal(life.settle(grant, refused('other')).kind, 'lease_lost')
    }
  },

  'after rerun the next claim runs with the same effect keys': (machine) => {
    const { life, grant } = lifeIn(machine, 'unknown')
    resolve(life, { kind: 'rerun' })
    assert.equal(life.lease('c2').incarnation, grant.incarnation)
  },

  'a lapsed lease is resolved as what it has become': (machine) => {
    const { life } = lifeIn(machine, 'running')
    assert.deepEqual(resolve(life, succeeded), { kind: 'refused', why: 'not_resolvable' })
    life.pass(DAY)
    assert.deepEqual(resolve(life, succeeded), { kind: 'done' })
    assert.equal(life.claim('c2').kind, 'replay_success')
  },

  'only an unknown outcome is resolved': (machine) => {
    for (const shape of shapeNames) {
      if (shape === 'unknown') continue
      const { life } = lifeIn(machine, shape)
      const before = life.record
      const why = before?.state === 'vacant' ? 'not_found' : 'not_resolvable'
      assert.deepEqual(resolve(life, succeeded), { kind: 'refused', why }, shape)
      assert.equal(life.record, before, shape)
    }
    assert.deepEqual(resolve(createLife(machine), succeeded), { kind: 'refused', why: 'not_found' })
  },

  'an operator may require the fence that was shown': (machine) => {
    const { life, grant } = lifeIn(machine, 'unknown')
    const before = life.record
    assert.deepEqual(resolve(life, succeeded, { ifFence: grant.fence + 1 }), { kind: 'refused', why: 'fence_moved' })
    assert.deepEqual(forget(life, false, grant.fence + 1), { kind: 'refused', why: 'fence_moved' })
    assert.equal(life.record, before)
    assert.deepEqual(resolve(life, succeeded, { ifFence: grant.fence }), { kind: 'done' })
  },

  'one probe at a time': (machine) => {
    const { life } = lifeIn(machine, 'unknown')
    const first = granted(probe(life, 'p1'))
    assert.deepEqual(probe(life, 'p2'), { kind: 'unchanged' })
    assert.equal(granted(probe(life, 'p1')), first)
    life.pass(LEASE_MS + limits.leaseGraceMs - 1)
    assert.deepEqual(probe(life, 'p2'), { kind: 'unchanged' })
    life.pass(1)
    const second = granted(probe(life, 'p2'))
    assert.ok(second > first)
    assert.equal(life.record?.state === 'unknown' && life.record.probes, 2)
  },

  'a probe that lost its turn resolves nothing': (machine) => {
    const { life } = lifeIn(machine, 'unknown')
    const first = granted(probe(life, 'p1'))
    life.pass(DAY)
    const second = granted(probe(life, 'p2'))
    const before = life.record
    assert.deepEqual(resolve(life, succeeded, { probeFence: first }), { kind: 'refused', why: 'fence_moved' })
    assert.equal(life.record, before)
    assert.deepEqual(resolve(life, succeeded, { probeFence: second }), { kind: 'done' })
    assert.equal(life.record?.history.at(-1)?.what, 'probed')
  },

  'a probe without an answer is called again later': (machine) => {
    const { life } = lifeIn(machine, 'unknown')
    const fence = granted(probe(life, 'p1'))
    assert.deepEqual(resolve(life, { kind: 'cannot_tell', probeAfterMs: MINUTE }, { probeFence: fence }), {
      kind: 'done',
    })
    assert.equal(life.record?.state, 'unknown')
    life.pass(MINUTE - 1)
    assert.deepEqual(probe(life, 'p2'), { kind: 'unchanged' })
    life.pass(1)
    granted(probe(life, 'p2'))
  },

  "while a probe runs, the attempt's own late settle still counts": (machine) => {
    const { life, grant } = lifeIn(machine, 'unknown')
    const fence = granted(probe(life, 'p1'))
    assert.equal(life.settle(grant, done()).kind, 'applied')
    assert.deepEqual(resolve(life, failed, { probeFence: fence }), { kind: 'refused', why: 'not_resolvable' })
    assert.equal(life.record?.state, 'succeeded')
  },

  'only an unknown outcome is probed': (machine) => {
    for (const shape of shapeNames) {
      if (shape === 'unknown') continue
      const { life } = lifeIn(machine, shape)
      const before = life.record
      assert.deepEqual(probe(life, 'p1'), { kind: 'unchanged' }, shape)
      assert.equal(life.record, before, shape)
    }
  },

  'forgetting frees any identity and raises the fence': (machine) => {
    for (const shape of shapeNames) {
      const { life, grant } = lifeIn(machine, shape)
      const before = life.record
      const decision = forget(life, false)
      if (shape === 'released' || shape === 'forgotten') {
        assert.deepEqual(decision, { kind: 'refused', why: 'not_found' })
        assert.equal(life.record, before)
        continue
      }
      assert.deepEqual(decision, { kind: 'done' }, shape)
      assert.ok(life.record !== null && before !== null && life.record.fence > before.fence)
      assert.equal(life.settle(grant, done()).kind, 'lease_lost', shape)
      const decisionAfter = life.claim('c9', { fingerprints: ['v1:1:b'] })
      assert.equal(decisionAfter.kind, 'first_attempt', shape)
    }
  },

  'an operator releases only what runs': (machine) => {
    for (const shape of shapeNames) {
      const { life } = lifeIn(machine, shape)
      const { state } = life.record ?? assert.fail()
      const decision = forget(life, true)
      if (state === 'in_progress') assert.deepEqual(decision, { kind: 'done' }, shape)
      else if (state === 'vacant') assert.deepEqual(decision, { kind: 'refused', why: 'not_found' }, shape)
      else assert.deepEqual(decision, { kind: 'refused', why: 'not_resolvable' }, shape)
    }
  },

  'a business value belongs to its first owner forever': (machine) => {
    const life = createLife(machine)
    const since = life.now
    const own = (owner: string, claimId: string): UniqueDecision => {
      return life.send({ kind: 'unique', id: 'r', identity, claimId, owner })
    }
    assert.deepEqual(own('order-1', 'c1'), { kind: 'unique_claimed' })
    const before = life.record
    life.pass(100_000 * DAY)
    assert.deepEqual(own('order-2', 'c2'), { kind: 'unique_taken', owner: 'order-1', since })
    assert.deepEqual(own('order-1', 'c3'), { kind: 'unique_claimed' })
    assert.equal(life.record, before)
    const other = { ...identity, tenant: 'other' }
    const collision = life.send({ kind: 'unique', id: 'r', identity: other, claimId: 'c4', owner: 'order-1' })
    assert.deepEqual(collision, { kind: 'identity_collision' })
  },

  'a forgotten business value is free again': (machine) => {
    const life = createLife(machine)
    life.send({ kind: 'unique', id: 'r', identity, claimId: 'c1', owner: 'order-1' })
    forget(life, false)
    const decision = life.send({ kind: 'unique', id: 'r', identity, claimId: 'c2', owner: 'order-2' })
    assert.deepEqual(decision, { kind: 'unique_claimed' })
  },
}
