import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isOnceError } from '../../../src/ledger/core/errors.ts'
import { limits, MINUTE, SECOND } from '../../../src/ledger/core/limits.ts'
import type { LedgerRecord, Policy } from '../../../src/ledger/core/record.ts'
import type { Grant, Settlement } from '../../../src/ledger/core/request.ts'
import { transition } from '../../../src/ledger/core/transition.ts'
import { happened } from '../../../src/ledger/definition.ts'
import type { EffectContext } from '../../../src/ledger/effect-context.ts'
import { succeeded } from '../../../src/ledger/granted.ts'
import { createLedger } from '../../../src/ledger/ledger.ts'
import { memoryStore } from '../../../src/ledger/stores/memory/index.ts'
import { createSimulation } from '../../support/simulation.ts'

/** What the simulation found, each as its shortest history. */

const call = { timeoutMs: 1 * SECOND }
const who = { tenant: 't', caller: 'c', key: 'k' }
const identity = { tenant: 't', caller: 'c', operation: 'o', key: 'k' }
const policy: Policy = { onAbandoned: 'rerun', retainMs: 1 * MINUTE, refuseMs: 0, unknownMs: 1 * MINUTE }

/** One identity and its store, whose time moves by hand. */
function createStory() {
  let stored: LedgerRecord | null = null
  let now = 1_000_000
  let fence = 0
  const step = <R extends Parameters<typeof transition>[1]>(request: R) => {
    fence += 1
    const { record, decision } = transition(stored, request, { now, fence })
    stored = record
    return decision
  }
  return {
    record: () => stored,
    pass: (ms: number) => void (now += ms),
    sweep: () => void (stored = null),
    claim(claimId: string): Grant {
      const fingerprints = ['v1:1:a'] as const
      const rest = { claimId, fingerprints, leaseMs: 10 * SECOND, start: true, wait: false, policy }
      const decision = step({ kind: 'claim', id: 'r', identity, ...rest })
      assert.ok(decision.kind === 'first_attempt' || decision.kind === 'reclaimed', decision.kind)
      return decision.lease
    },
    settle: (grant: Grant, to: Settlement) => step({ kind: 'settle', id: 'r', grant, to, pointer: null }),
  }
}

const done: Settlement = { state: 'succeeded', outcome: { kept: 'response', data: '1' } }
const unclear: Settlement = { state: 'unknown', reason: null }

for (const swept of [false, true]) {
  const place = swept ? 'after the sweep' : 'before the sweep'

  test(`a holder that slept through a whole other life of its key writes nothing (${place})`, () => {
    const story = createStory()
    const sleeper = story.claim('c1')
    story.pass(10 * SECOND + limits.leaseGraceMs)
    story.settle(story.claim('c2'), done)
    story.pass(policy.retainMs)
    if (swept) story.sweep()
    const before = story.record()
    assert.deepEqual(story.settle(sleeper, unclear), { kind: 'lease_lost', state: 'absent', conflict: false })
    assert.equal(story.record(), before)
  })
}

test('a repeated settle of an outcome that has expired meanwhile is harmless', () => {
  const story = createStory()
  const grant = story.claim('c1')
  story.settle(grant, done)
  story.pass(policy.retainMs)
  assert.deepEqual(story.settle(grant, done), { kind: 'applied', recordLost: false })
})

test('a record that cannot have expired yet was lost by the store, and is written anew', () => {
  const story = createStory()
  const grant = story.claim('c1')
  story.pass(policy.retainMs - 1)
  story.sweep()
  assert.deepEqual(story.settle(grant, done), { kind: 'applied', recordLost: true })
  assert.equal(story.record()?.state, 'succeeded')
})

test('a lease that is settled by hand reports a late conflict like any other', async () => {
  const store = memoryStore({ testClock: true })
  const kinds: string[] = []
  const ledger = createLedger({ store, background: false, on: ({ kind }) => kinds.push(kind) })
  const operation = ledger.operation({ name: 'o', effect: 'repeatable' })
  const claimed = await operation.claim(who, 1)
  assert.ok(claimed.kind === 'first_attempt')
  await store.clock.advance(40 * SECOND, call)
  await operation.run(who, 1, () => 'second')
  await assert.rejects(claimed.lease.settle(succeeded('first')))
  assert.ok(kinds.includes('late_outcome_conflict'), kinds.join(', '))
  await ledger.stop()
})

for (const way of ['operator', 'probe'] as const) {
  test(`an unknown outcome keeps the pointer of its result when resolved (${way})`, async () => {
    const store = memoryStore({ testClock: true })
    const ledger = createLedger({ store, background: false })
    const operation = ledger.operation({
      name: 'o',
      effect: 'external',
      keep: 'pointer',
      pointer: (id: string) => ({ type: 'order', id }),
      rebuild: ({ type, id }) => `${type} ${id}`,
      ...(way === 'probe' ? { probe: async () => happened('7') } : {}),
    })
    const unclear = operation.run(who, 1, async (attempt) => {
      await attempt.attach({ type: 'draft', id: '1' })
      throw new Error('no answer')
    })
    await assert.rejects(unclear)
    if (way === 'operator') await ledger.resolve({ ...who, operation: 'o' }, succeeded('7'))
    await store.clock.advance(10 * SECOND, call)
    assert.equal(await operation.run(who, 1, () => assert.fail('ran again')), 'order 7')
    await ledger.stop()
  })
}

test('an answer that took long to come is not kept as if it were fresh', async () => {
  const simulation = createSimulation({ seed: 1 })
  const { runtime } = simulation.process()
  const clock = { monotonicMs: simulation.now, wallMs: () => 0, setTimer: simulation.timer }
  const store = memoryStore({ clock })
  const slow = {
    ...store,
    claims: {
      ...store.claims,
      apply: async (...args: Parameters<typeof store.claims.apply>) => {
        const answers = await store.claims.apply(...args)
        await simulation.after(5 * SECOND)
        return answers
      },
    },
  } as typeof store
  const near = createLedger({ store, runtime, background: false })
  const far = createLedger({ store: slow, runtime, background: false })
  const define = { name: 'o', effect: 'repeatable' } as const
  const here = near.operation(define)
  const there = far.operation(define)
  const values: unknown[] = []
  const story = async () => {
    await here.run(who, 1, () => 'old')
    const replay = there.run(who, 1, () => assert.fail('ran again'))
    await simulation.after(1 * SECOND)
    // Forgotten while the answer is under way: it arrives four seconds later.
    await near.forget({ ...who, operation: 'o' })
    values.push(await replay)
    values.push(await there.run(who, 1, () => 'new'))
  }
  void story()
  await simulation.run({ untilMs: 10 * MINUTE, events: 10_000 })
  assert.deepEqual(values, ['old', 'new'])
})

test('an effect learns that the store has ended its transaction', async () => {
  const simulation = createSimulation({ seed: 1 })
  const { runtime } = simulation.process()
  const clock = { monotonicMs: simulation.now, wallMs: () => 0, setTimer: simulation.timer }
  const ledger = createLedger({ store: memoryStore({ clock }), runtime, background: false })
  const outer = ledger.operation({ name: 'outer', effect: 'transaction' })
  const inner = ledger.operation({ name: 'inner', effect: 'transaction' })
  const seen: unknown[] = []
  const look = (attempt: EffectContext) => {
    seen.push(attempt.signal.aborted)
    assert.throws(
      () => attempt.derive('call'),
      (error) => isOnceError(error, 'lease_over'),
    )
  }
  const zombie = outer.run(who, 1, async (attempt) => {
    await inner.run(who, 1, async (nested) => {
      await simulation.after(limits.writerHoldMs + 1 * SECOND)
      look(attempt)
      look(nested)
    })
  })
  zombie.catch((error: unknown) => seen.push(isOnceError(error) && error.code))
  await simulation.run({ untilMs: 1 * MINUTE, events: 10_000 })
  assert.deepEqual(seen, ['transaction_too_long', true, true])
})

test('an effect may act until its longest duration is over, and no longer', async () => {
  const simulation = createSimulation({ seed: 1 })
  const { runtime } = simulation.process()
  const clock = { monotonicMs: simulation.now, wallMs: () => 0, setTimer: simulation.timer }
  const ledger = createLedger({ store: memoryStore({ clock }), runtime, background: false })
  const long = { leaseMs: 30 * SECOND, maxRunMs: 50 * SECOND }
  const operation = ledger.operation({ name: 'o', effect: 'external', ...long })
  const acted: boolean[] = []
  const running = operation.execute(who, 1, async (attempt) => {
    for (const ms of [long.maxRunMs - 1, 1]) {
      await simulation.after(ms)
      acted.push(attempt.derive('call') !== '')
    }
  })
  void running.then(() => ledger.stop())
  await simulation.run({ untilMs: 10 * MINUTE, events: 10_000 })
  assert.deepEqual(acted, [true])
})

test('a reservation whose start is answered too late begins nothing', async () => {
  const simulation = createSimulation({ seed: 1 })
  const { runtime } = simulation.process()
  const clock = { monotonicMs: simulation.now, wallMs: () => 0, setTimer: simulation.timer }
  const store = memoryStore({ clock })
  const slow = {
    ...store,
    claims: {
      ...store.claims,
      apply: async (...[request, options]: Parameters<typeof store.claims.apply>) => {
        const applied = await store.claims.apply(request, options)
        if (request.kind === 'start' || request.kind === 'renew') await simulation.after(9 * SECOND)
        return applied
      },
    },
  } as typeof store
  const ledger = createLedger({ store: slow, runtime, background: false })
  const operation = ledger.operation({ name: 'o', effect: 'external', leaseMs: 2 * SECOND })
  let outcome: unknown = 'started'
  const story = async () => {
    const claimed = await operation.claim(who, 1, { reserve: true })
    assert.ok(claimed.kind === 'first_attempt')
    await claimed.lease.start().catch((error: unknown) => (outcome = isOnceError(error) && error.code))
  }
  runtime.soon(() => void story())
  await simulation.run({ untilMs: 1 * MINUTE, events: 10_000 })
  assert.equal(outcome, 'lease_over')
})
