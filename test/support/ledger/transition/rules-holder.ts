import assert from 'node:assert/strict'
import { DAY, limits, MINUTE } from '../../../../src/ledger/core/limits.ts'
import { wakesWaiters } from '../../../../src/ledger/core/record.ts'
import type { Grant, HolderDecision, Request } from '../../../../src/ledger/core/request.ts'
import type { Life } from './life.ts'
import { createLife, done, LEASE_MS, lifeIn, notDone, policy, refused, shapeNames, unclear } from './life.ts'
import type { Rules } from './rules-claim.ts'

const applied: HolderDecision = { kind: 'applied', recordLost: false }

function holderSteps({ id, claimId, fence }: Grant): Request[] {
  return [
    { kind: 'start', id, claimId, fence, leaseMs: LEASE_MS },
    { kind: 'renew', id, claimId, fence, leaseMs: LEASE_MS },
    { kind: 'attach', id, claimId, fence, pointer: { type: 'order', id: '1' } },
  ]
}

function release(life: Life, claimId: string, fingerprint = 'v1:1:a'): HolderDecision {
  const { identity } = life.record ?? createdIdentity
  return life.send({ kind: 'release', id: 'r', identity, claimId, fingerprint, policy })
}

const createdIdentity = { identity: { tenant: 'acme', caller: 'shop', operation: 'pay', key: 'k-1' } }

export const holderRules: Rules = {
  'a holder starts, renews and attaches': (machine) => {
    const { life, grant } = lifeIn(machine, 'reserved')
    life.pass(1_000)
    for (const request of holderSteps(grant)) assert.deepEqual(life.send(request), applied, request.kind)
    const { record } = life
    assert.ok(record?.state === 'in_progress' && record.started)
    assert.equal(record.leaseUntil, life.now + LEASE_MS)
    assert.deepEqual(record.pointer, { type: 'order', id: '1' })
  },

  'renewing and attaching do not start a reservation': (machine) => {
    const { life, grant } = lifeIn(machine, 'reserved')
    for (const request of holderSteps(grant).slice(1)) life.send(request)
    assert.ok(life.record?.state === 'in_progress' && !life.record.started)
  },

  'a lease stays with its holder until another claim takes it, however late': (machine) => {
    const { life, grant } = lifeIn(machine, 'running')
    life.pass(DAY)
    for (const request of holderSteps(grant)) assert.deepEqual(life.send(request), applied, request.kind)
  },

  'the right fence with another claim id owns nothing': (machine) => {
    const { life, grant } = lifeIn(machine, 'running')
    const before = life.record
    const stranger = { ...grant, claimId: 'c2' }
    for (const request of holderSteps(stranger)) {
      assert.equal(life.send(request).kind, 'lease_lost', request.kind)
      assert.equal(life.record, before)
    }
    assert.equal(life.settle(stranger, done()).kind, 'lease_lost')
    assert.equal(life.record?.state, 'in_progress')
  },

  'the right claim id with an older fence owns nothing': (machine) => {
    const { life, grant } = lifeIn(machine, 'running')
    const before = life.record
    const old = { ...grant, fence: grant.fence - 1 }
    for (const request of holderSteps(old)) {
      assert.equal(life.send(request).kind, 'lease_lost', request.kind)
      assert.equal(life.record, before)
    }
    assert.equal(life.settle(old, done()).kind, 'lease_lost')
    assert.equal(life.record?.state, 'in_progress')
  },

  'nothing but a running attempt can be started, renewed or pointed to': (machine) => {
    for (const shape of shapeNames) {
      if (shape === 'running' || shape === 'reserved') continue
      const { life, grant } = lifeIn(machine, shape)
      const before = life.record
      for (const request of holderSteps(grant)) {
        assert.deepEqual(life.send(request), { kind: 'lease_lost', state: before?.state, conflict: false }, shape)
        assert.equal(life.record, before, shape)
      }
    }
  },

  'nothing is recorded for a holder whose record is not there': (machine) => {
    const { grant } = lifeIn(machine, 'running')
    const life = createLife(machine)
    for (const request of holderSteps(grant)) {
      assert.deepEqual(life.send(request), { kind: 'lease_lost', state: 'absent', conflict: false })
      assert.equal(life.record, null)
    }
  },

  'settling records the outcome, and settling again answers the same': (machine) => {
    for (const to of [done(), refused(), notDone(), unclear]) {
      const { life, grant } = lifeIn(machine, 'running')
      assert.deepEqual(life.settle(grant, to), applied)
      const { record } = life
      assert.equal(record?.state, to.state)
      life.pass(1_000)
      assert.deepEqual(life.settle(grant, to), applied)
      assert.equal(life.record, record)
    }
  },

  'a late settle of the holder counts until another claim has taken over': (machine) => {
    for (const shape of ['lapsed', 'unknown'] as const) {
      for (const to of [done(), refused(), notDone()]) {
        const { life, grant } = lifeIn(machine, shape)
        assert.deepEqual(life.settle(grant, to), applied, shape)
        assert.equal(life.record?.state, to.state)
        assert.equal(life.record?.state === 'failed_retryable' && life.record.lapsed, false)
      }
    }
  },

  'a settled failure stays what it is when the same claim says something else later': (machine) => {
    for (const shape of ['failed_retryable', 'failed_terminal', 'succeeded'] as const) {
      const { life, grant } = lifeIn(machine, shape)
      const before = life.record
      life.settle(grant, shape === 'succeeded' ? refused() : done('other'))
      assert.equal(life.record, before, shape)
    }
  },

  'a second "unknown" does not push the end of the first one away': (machine) => {
    const { life, grant } = lifeIn(machine, 'unknown')
    const before = life.record
    life.pass(MINUTE)
    assert.deepEqual(life.settle(grant, unclear), applied)
    assert.equal(life.record, before)
  },

  'a superseded settle changes nothing but the history, once': (machine) => {
    const { life, grant } = lifeIn(machine, 'lapsed')
    life.settle(life.lease('c2'), done('second'))
    const { history, ...before } = life.record ?? assert.fail()
    for (const times of ['first', 'again']) {
      const decision = life.settle(grant, done('first'))
      assert.deepEqual(decision, { kind: 'lease_lost', state: 'succeeded', conflict: true }, times)
      const { history: after, ...rest } = life.record ?? assert.fail()
      assert.deepEqual(rest, before)
      assert.equal(after.length, history.length + 1)
      assert.equal(after.at(-1)?.what, 'superseded')
      assert.equal(after.at(-1)?.fence, grant.fence)
    }
  },

  'only what contradicts the record is a conflict': (machine) => {
    const conflicts = [done('x'), done('y'), refused('x'), notDone(), unclear].map((to) => {
      const { life, grant } = lifeIn(machine, 'lapsed')
      life.settle(life.lease('c2'), done('x'))
      const decision = life.settle(grant, to)
      assert.ok(decision.kind === 'lease_lost')
      return decision.conflict
    })
    assert.deepEqual(conflicts, [false, true, true, false, false])
  },

  'history stays bounded': (machine) => {
    const life = createLife(machine)
    const rerun = { ...policy, onAbandoned: 'rerun' } as const
    for (let attempt = 0; attempt < 2 * limits.historyEntries; attempt++) {
      life.lease(`c${attempt}`, { policy: rerun })
      life.pass(DAY)
    }
    assert.equal(life.record?.history.length, limits.historyEntries)
  },

  'a settle brings a lost record back': (machine) => {
    const { grant } = lifeIn(machine, 'running')
    const life = createLife(machine)
    assert.deepEqual(life.settle(grant, done()), { kind: 'applied', recordLost: true })
    assert.deepEqual(life.record?.identity, grant.identity)
    assert.equal(life.record?.incarnation, grant.incarnation)
    assert.equal(life.claim('c2').kind, 'replay_success')
    assert.equal(life.record?.history[0]?.what, 'lost')
  },

  'a late word does not bring an expired record back, swept or not': (machine) => {
    for (const swept of [true, false]) {
      const { life, grant } = lifeIn(machine, 'lapsed')
      life.settle(life.lease('c2'), done('second'))
      life.pass(policy.retainMs)
      const late = swept ? createLife(machine) : life
      if (swept) late.pass(policy.retainMs + DAY)
      assert.equal(late.settle(grant, notDone()).kind, 'lease_lost', `swept: ${swept}`)
      const fresh = late.claim('c3')
      assert.ok(fresh.kind === 'first_attempt' && fresh.lease.incarnation !== grant.incarnation)
    }
  },

  'a settle keeps the attached pointer unless it brings its own': (machine) => {
    for (const own of [null, { type: 'order', id: '2' }]) {
      const { life, grant } = lifeIn(machine, 'running')
      const { id, claimId, fence } = grant
      life.send({ kind: 'attach', id, claimId, fence, pointer: { type: 'order', id: '1' } })
      life.send({ kind: 'settle', id, grant, to: done(), pointer: own })
      assert.equal(life.record?.pointer?.id, own === null ? '1' : '2')
    }
  },

  'the pointer of an earlier attempt is handed to the next one': (machine) => {
    const { life, grant } = lifeIn(machine, 'running')
    const { id, claimId, fence } = grant
    life.send({ kind: 'attach', id, claimId, fence, pointer: { type: 'order', id: '1' } })
    life.settle(grant, notDone())
    assert.deepEqual(life.lease('c2').pointer, { type: 'order', id: '1' })
  },

  'a released claim raises the fence and can do nothing more': (machine) => {
    const { life, grant } = lifeIn(machine, 'running')
    assert.deepEqual(release(life, 'c1'), applied)
    assert.ok(life.record !== null && life.record.fence > grant.fence)
    assert.equal(life.settle(grant, done()).kind, 'lease_lost')
    assert.equal(life.record?.state, 'vacant')
    assert.deepEqual(release(life, 'c1'), applied)
  },

  "a late loser does not free its successor's lease": (machine) => {
    const { life } = lifeIn(machine, 'lapsed')
    life.lease('c2')
    const before = life.record
    assert.equal(release(life, 'c1').kind, 'lease_lost')
    assert.equal(life.record, before)
  },

  'nothing but a running claim is released': (machine) => {
    for (const shape of ['succeeded', 'failed_terminal', 'failed_retryable', 'lapsed', 'unknown'] as const) {
      const { life } = lifeIn(machine, shape)
      const before = life.record
      assert.equal(release(life, 'c1').kind, 'lease_lost', shape)
      assert.equal(life.record, before, shape)
    }
  },

  'a release that overtakes its claim stops it': (machine) => {
    const life = createLife(machine)
    assert.deepEqual(release(life, 'c1'), applied)
    assert.equal(life.claim('c1').kind, 'retry_later')
    const lease = life.lease('c2')
    assert.equal(lease.attempt, 1)
    assert.equal(lease.incarnation, lease.fence)
  },

  'a late copy of a released claim does not come to life': (machine) => {
    const { life } = lifeIn(machine, 'released')
    assert.equal(life.claim('c1').kind, 'retry_later')
    assert.equal(life.record?.state, 'vacant')
  },

  'the trace of a release is gone after its time': (machine) => {
    const { life } = lifeIn(machine, 'released')
    life.pass(limits.vacantMs)
    const decision = life.claim('c1')
    assert.equal(decision.kind, 'first_attempt')
  },

  'whatever ends an awaited attempt wakes its waiters': (machine) => {
    const ends: ((life: Life, grant: Grant) => void)[] = [
      (life, grant) => life.settle(grant, done()),
      (life, grant) => life.settle(grant, refused()),
      (life, grant) => life.settle(grant, notDone()),
      (life, grant) => life.settle(grant, unclear),
      (life) => release(life, 'c1'),
      (life) => life.send({ kind: 'forget', id: 'r', by: 'ops', ifFence: null, onlyRunning: true }),
      (life, { id, claimId, fence }) =>
        life.send({ kind: 'attach', id, claimId, fence, pointer: { type: 'o', id: '1' } }),
      (life) => {
        life.pass(DAY)
        life.send({ kind: 'reconcile', id: 'r' })
      },
    ]
    for (const end of ends) {
      const { life, grant } = lifeIn(machine, 'running')
      life.claim('c2', { wait: true })
      const before = life.record
      end(life, grant)
      assert.equal(wakesWaiters(before, life.record), true, end.toString())
    }
  },

  'renewing wakes no waiter': (machine) => {
    const { life, grant } = lifeIn(machine, 'running')
    life.claim('c2', { wait: true })
    const before = life.record
    const { id, claimId, fence } = grant
    life.send({ kind: 'renew', id, claimId, fence, leaseMs: 2 * LEASE_MS })
    assert.equal(wakesWaiters(before, life.record), false)
  },
}
