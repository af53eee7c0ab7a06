import assert from 'node:assert/strict'
import { DAY, limits, MINUTE } from '../../../../src/ledger/core/limits.ts'
import type { ClaimDecision } from '../../../../src/ledger/core/request.ts'
import type { Shape } from './life.ts'
import { createLife, done, identity, LEASE_MS, lifeIn, notDone, policy, refused, shapeNames, unclear } from './life.ts'
import type { Machine } from './world.ts'

/** A rule of the ledger by its name. It throws when the machine does not keep it. */
export type Rules = Readonly<Record<string, (machine: Machine) => void>>

const GRACE_MS = limits.leaseGraceMs

/** The table of ledger.md: what an identical claim gets, by the state of the record. */
const answers: Record<Shape, ClaimDecision['kind']> = {
  reserved: 'in_progress',
  running: 'in_progress',
  succeeded: 'replay_success',
  failed_terminal: 'replay_failure',
  failed_retryable: 'retry_later',
  lapsed: 'reclaimed',
  unknown: 'outcome_unknown',
  released: 'reclaimed',
  forgotten: 'first_attempt',
}

export const claimRules: Rules = {
  'an unknown key is a first attempt': (machine) => {
    const life = createLife(machine)
    const decision = life.claim('c1')
    assert.equal(decision.kind, 'first_attempt')
    assert.ok(decision.kind === 'first_attempt')
    const { lease } = decision
    assert.equal(lease.attempt, 1)
    assert.equal(lease.fence, lease.incarnation)
    assert.equal(lease.leaseUntil, life.now + LEASE_MS)
    assert.equal(life.record?.state, 'in_progress')
  },

  'every state gives an identical claim its answer': (machine) => {
    for (const shape of shapeNames) {
      const { life } = lifeIn(machine, shape)
      assert.equal(life.claim('c2').kind, answers[shape], shape)
    }
  },

  'a reused key outranks every answer and changes nothing': (machine) => {
    for (const shape of shapeNames) {
      if (shape === 'released' || shape === 'forgotten') continue
      for (const laterMs of [0, MINUTE]) {
        const { life } = lifeIn(machine, shape)
        life.pass(laterMs)
        const before = life.record
        const decision = life.claim('c2', { fingerprints: ['v1:1:b'] })
        assert.deepEqual(decision, { kind: 'key_reused', recorded: 'v1:1:a', presented: 'v1:1:b' }, shape)
        assert.equal(life.record, before, shape)
      }
    }
  },

  'a payload of an older shape is answered, and said to be unverified': (machine) => {
    for (const shape of shapeNames) {
      const { life } = lifeIn(machine, shape)
      const decision = life.claim('c2', { fingerprints: ['v1:2:x'] })
      const expected = shape === 'released' ? 'first_attempt' : answers[shape]
      assert.equal(decision.kind, expected, shape)
      if ('verified' in decision && decision.kind !== 'first_attempt') assert.equal(decision.verified, false, shape)
    }
  },

  'an older shape that is still known verifies': (machine) => {
    const { life } = lifeIn(machine, 'succeeded')
    const decision = life.claim('c2', { fingerprints: ['v1:2:x', 'v1:1:a'] })
    assert.ok(decision.kind === 'replay_success' && decision.verified)
  },

  'two identities under one id never meet': (machine) => {
    for (const shape of shapeNames) {
      const { life } = lifeIn(machine, shape)
      const before = life.record
      assert.equal(life.claim('c2', { identity: { ...identity, tenant: 'other' } }).kind, 'identity_collision')
      assert.equal(life.record, before, shape)
    }
  },

  'an own claim, repeated, is recognised and its lease counts anew': (machine) => {
    for (const laterMs of [1, LEASE_MS, LEASE_MS + GRACE_MS, DAY]) {
      const { life, grant } = lifeIn(machine, 'running')
      life.pass(laterMs)
      const again = life.claim('c1')
      assert.ok(again.kind === 'first_attempt')
      assert.equal(again.lease.fence, grant.fence)
      assert.equal(again.lease.attempt, 1)
      assert.equal(again.lease.leaseUntil, life.now + LEASE_MS)
    }
  },

  'an own claim of a later attempt is recognised as reclaimed': (machine) => {
    const { life } = lifeIn(machine, 'lapsed')
    const grant = life.lease('c2')
    const again = life.claim('c2')
    assert.ok(again.kind === 'reclaimed')
    assert.equal(again.lease.fence, grant.fence)
  },

  'a lease lapses a grace after its end and no moment sooner': (machine) => {
    const { life } = lifeIn(machine, 'running')
    life.pass(LEASE_MS + GRACE_MS - 1)
    assert.equal(life.claim('c2').kind, 'in_progress')
    life.pass(1)
    assert.equal(life.claim('c3').kind, 'outcome_unknown')
    assert.equal(life.record?.state, 'unknown')
  },

  'a lapsed lease that may be rerun goes to one winner with a higher fence': (machine) => {
    const life = createLife(machine)
    const rerun = { ...policy, onAbandoned: 'rerun' } as const
    const first = life.lease('c1', { policy: rerun })
    life.pass(LEASE_MS + GRACE_MS)
    const decision = life.claim('c2', { policy: rerun })
    assert.ok(decision.kind === 'reclaimed')
    assert.ok(decision.lease.fence > first.fence)
    assert.equal(decision.lease.incarnation, first.incarnation)
    assert.equal(decision.lease.attempt, 2)
    assert.equal(life.claim('c3', { policy: rerun }).kind, 'in_progress')
  },

  'a lapsed lease is unknown when its effect may not be repeated': (machine) => {
    for (const onAbandoned of ['hold', 'probe'] as const) {
      const life = createLife(machine)
      const grant = life.lease('c1', { policy: { ...policy, onAbandoned } })
      life.pass(LEASE_MS + GRACE_MS)
      const decision = life.claim('c2')
      assert.deepEqual(decision, { kind: 'outcome_unknown', since: life.now, attempts: 1, verified: true })
      assert.equal(life.record?.fence, grant.fence)
    }
  },

  'a lapsed reservation is free again, whatever the policy': (machine) => {
    for (const onAbandoned of ['rerun', 'hold', 'probe'] as const) {
      const life = createLife(machine)
      life.lease('c1', { start: false, policy: { ...policy, onAbandoned } })
      life.pass(LEASE_MS + GRACE_MS)
      assert.equal(life.claim('c2').kind, 'reclaimed', onAbandoned)
    }
  },

  'an effect that named what it makes is held, one that did not is free again': (machine) => {
    for (const attached of [true, false]) {
      const life = createLife(machine)
      const { id, claimId, fence } = life.lease('c1', { policy: { ...policy, onAbandoned: 'hold_attached' } })
      if (attached) life.send({ kind: 'attach', id, claimId, fence, pointer: { type: 'order', id: '1' } })
      life.pass(LEASE_MS + GRACE_MS)
      assert.equal(life.claim('c2').kind, attached ? 'outcome_unknown' : 'reclaimed')
    }
  },

  'a window that counts from its claim is extended by nothing': (machine) => {
    const window = { ...policy, retainFrom: 'claimed', retainMs: 10 * MINUTE } as const
    for (const to of [done(), refused(), unclear]) {
      const life = createLife(machine)
      const grant = life.lease('c1', { policy: window })
      life.pass(MINUTE)
      life.settle(grant, to)
      life.pass(9 * MINUTE - 1)
      assert.notEqual(life.claim('c2').kind, 'first_attempt', to.state)
      life.pass(1)
      // What is unknown becomes a terminal failure at the end of its window, and that is gone at once.
      if (to.state === 'unknown') life.send({ kind: 'reconcile', id: 'r' })
      assert.equal(life.claim('c3').kind, 'first_attempt', to.state)
    }
  },

  'a replay gives the recorded outcome until it expires': (machine) => {
    for (const [to, kind] of [
      [done('x'), 'replay_success'],
      [refused('x'), 'replay_failure'],
    ] as const) {
      const life = createLife(machine)
      life.pass(5)
      const grant = life.lease('c1')
      life.pass(MINUTE)
      life.settle(grant, to)
      life.pass(policy.retainMs - 1)
      const outcome = { kept: 'response', data: 'x' }
      assert.deepEqual(life.claim('c2'), { kind, outcome, verified: true })
      life.pass(1)
      const after = life.claim('c3')
      assert.ok(after.kind === 'first_attempt')
      assert.ok(after.lease.fence > grant.fence)
      assert.notEqual(after.lease.incarnation, grant.incarnation)
    }
  },

  'an expired key is refused as long as the policy says': (machine) => {
    const life = createLife(machine)
    const refusing = { ...policy, refuseMs: DAY }
    life.settle(life.lease('c1', { policy: refusing }), done())
    life.pass(policy.retainMs)
    assert.deepEqual(life.claim('c2'), { kind: 'key_expired', verified: true })
    assert.equal(life.claim('c2', { fingerprints: ['v1:1:b'] }).kind, 'key_reused')
    life.pass(DAY - 1)
    assert.equal(life.claim('c3').kind, 'key_expired')
    life.pass(1)
    assert.equal(life.claim('c4').kind, 'first_attempt')
  },

  'two winners after expiry are impossible': (machine) => {
    const life = createLife(machine)
    life.settle(life.lease('c1'), done())
    life.pass(policy.retainMs)
    assert.equal(life.claim('c2').kind, 'first_attempt')
    assert.equal(life.claim('c3').kind, 'in_progress')
  },

  'a retryable failure is tried again from its time on and not before': (machine) => {
    const life = createLife(machine)
    const grant = life.lease('c1')
    life.settle(grant, notDone(MINUTE))
    const retryAt = life.now + MINUTE
    life.pass(MINUTE - 1)
    assert.deepEqual(life.claim('c2'), { kind: 'retry_later', retryAt, retryAfterMs: 1, verified: true })
    life.pass(1)
    const decision = life.claim('c3')
    assert.ok(decision.kind === 'reclaimed')
    assert.equal(decision.lease.incarnation, grant.incarnation)
    assert.equal(decision.lease.attempt, 2)
  },

  'a retryable failure refuses nothing after expiry': (machine) => {
    const life = createLife(machine)
    life.settle(life.lease('c1', { policy: { ...policy, refuseMs: DAY } }), notDone())
    life.pass(policy.retainMs)
    assert.equal(life.claim('c2').kind, 'first_attempt')
  },

  'a claim that was settled already is not granted again': (machine) => {
    const life = createLife(machine)
    life.settle(life.lease('c1'), notDone())
    assert.equal(life.claim('c1').kind, 'retry_later')
    assert.equal(life.claim('c2').kind, 'reclaimed')
  },

  'an unknown outcome is given up after its time, and retention starts there': (machine) => {
    const { life, grant } = lifeIn(machine, 'unknown')
    const since = life.now
    life.pass(policy.unknownMs - 1)
    assert.deepEqual(life.claim('c2'), { kind: 'outcome_unknown', since, attempts: 1, verified: true })
    life.pass(1)
    const given = life.claim('c3')
    assert.ok(given.kind === 'replay_failure')
    assert.match(given.outcome.data ?? '', /"abandoned_unknown"/)
    assert.ok(life.record !== null && life.record.fence > grant.fence)
    life.pass(policy.retainMs - 1)
    assert.equal(life.claim('c4').kind, 'replay_failure')
    life.pass(1)
    assert.equal(life.claim('c5').kind, 'first_attempt')
  },

  'a live attempt never expires': (machine) => {
    const { life, grant } = lifeIn(machine, 'running')
    const { claimId, fence } = grant
    for (let days = 0; days < 10; days++) {
      life.pass(DAY)
      life.send({ kind: 'renew', id: 'r', claimId, fence, leaseMs: LEASE_MS })
    }
    assert.equal(life.claim('c2').kind, 'in_progress')
    assert.equal(life.record?.fence, fence)
  },

  'a duplicate gets a bounded time to retry after': (machine) => {
    const delays: number[] = []
    for (const soFarMs of [0, 2_000, 20_000]) {
      const { life } = lifeIn(machine, 'running')
      life.pass(soFarMs)
      const decision = life.claim('c2')
      assert.ok(decision.kind === 'in_progress')
      delays.push(decision.retryAfterMs)
    }
    assert.deepEqual(delays, [500, 2_000, 5_000])
  },

  'a duplicate that waits marks the attempt, one that does not leaves it unchanged': (machine) => {
    const { life } = lifeIn(machine, 'running')
    const before = life.record
    life.claim('c2')
    assert.equal(life.record, before)
    life.claim('c3', { wait: true })
    assert.equal(life.record?.awaited, true)
    const marked = life.record
    life.claim('c4', { wait: true })
    assert.equal(life.record, marked)
  },

  'a released identity keeps its effect keys for the same payload only': (machine) => {
    const same = lifeIn(machine, 'released')
    assert.equal(same.life.lease('c2').incarnation, same.grant.incarnation)
    const other = lifeIn(machine, 'released')
    const lease = other.life.lease('c2', { fingerprints: ['v1:1:b'] })
    assert.notEqual(lease.incarnation, other.grant.incarnation)
    assert.equal(lease.fingerprint, 'v1:1:b')
  },

  'a forgotten identity gets new effect keys and a higher fence': (machine) => {
    const { life, grant } = lifeIn(machine, 'forgotten')
    const lease = life.lease('c2')
    assert.notEqual(lease.incarnation, grant.incarnation)
    assert.ok(lease.fence > grant.fence)
    assert.equal(lease.attempt, 1)
  },

  'an unclear end is reported with its first time': (machine) => {
    const { life, grant } = lifeIn(machine, 'unknown')
    const since = life.now
    life.pass(MINUTE)
    life.settle(grant, unclear)
    const decision = life.claim('c2')
    assert.ok(decision.kind === 'outcome_unknown')
    assert.equal(decision.since, since)
  },
}
