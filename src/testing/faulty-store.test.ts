import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isOnceError } from '../ledger/core/errors.ts'
import type { ClaimRequest } from '../ledger/core/request.ts'
import { memoryStore } from '../ledger/stores/memory/index.ts'
import { applyTo } from './apply-all.ts'
import type { StoreFault } from './faulty-store.ts'
import { createFaultyStore } from './faulty-store.ts'

const CALL = { timeoutMs: 1_000 }
const TRANSACTION = { timeoutMs: 1_000, lockMs: 1_000, refuseTwinOf: null }

function claimOf(claimId: string): ClaimRequest {
  const identity = { tenant: 't', caller: 'c', operation: 'o', key: 'k' }
  const policy = { onAbandoned: 'hold', retainMs: 1_000, refuseMs: 0, unknownMs: 1_000 } as const
  const rest = { leaseMs: 1_000, start: true, wait: false, policy }
  return { kind: 'claim', id: 'r', identity, claimId, fingerprints: ['v1:1:a'], ...rest }
}

const cases: readonly (readonly [StoreFault, 'no' | 'maybe', boolean])[] = [
  ['refused', 'no', false],
  ['lost_request', 'maybe', false],
  ['lost_answer', 'maybe', true],
]

for (const [fault, applied, happened] of cases) {
  test(`${fault}: reported as "${applied}", and ${happened ? 'it happened' : 'nothing happened'}`, async () => {
    const store = memoryStore()
    const faulty = createFaultyStore(store, { script: ({ index }) => (index === 0 ? fault : undefined) })
    const error = await applyTo(faulty, claimOf('c1'), CALL).catch((thrown: unknown) => thrown)
    assert.ok(isOnceError(error, 'store_unavailable'))
    assert.equal(error.applied, applied)
    const { records } = await faulty.claims.read(['r'], CALL)
    assert.equal(records[0] !== null, happened)
    const again = await faulty.claims.apply(claimOf('c1'), CALL)
    assert.ok(again !== undefined && 'decision' in again && again.decision.kind === 'first_attempt')
    assert.deepEqual(
      faulty.faults.log.map((each) => each.fault),
      [fault],
    )
  })
}

test('after a crash nothing is answered any more, whether or not the last call took effect', async () => {
  for (const [fault, happened] of [
    ['crash_before', false],
    ['crash_after', true],
  ] as const) {
    const store = memoryStore()
    const faulty = createFaultyStore(store, { script: () => fault })
    const silent = Symbol('silent')
    // The memory store answers in the next turn of the event loop.
    const twoTurns = new Promise((resolve) => setImmediate(() => setImmediate(() => resolve(silent))))
    const answer = await Promise.race([faulty.claims.apply(claimOf('c1'), CALL), twoTurns])
    assert.equal(answer, silent)
    assert.equal(faulty.faults.crashed, true)
    const { records } = await store.claims.read(['r'], CALL)
    assert.equal(records[0] !== null, happened, fault)
  }
})

test('a lost COMMIT leaves the transaction done, a refused one undone', async () => {
  for (const [fault, value] of [
    ['lost_answer', 1],
    ['lost_request', undefined],
    ['refused', undefined],
  ] as const) {
    const store = memoryStore()
    const faulty = createFaultyStore(store, { script: () => fault })
    await assert.rejects(faulty.transactions.run(async ({ tx }) => tx.set('a', 1), TRANSACTION))
    assert.equal(await store.transactions.run(async ({ tx }) => tx.get('a'), TRANSACTION), value, fault)
  }
})

test('one seed, one run: faults by chance can be repeated, and end when they are healed', async () => {
  const run = async (seed: number) => {
    const faulty = createFaultyStore(memoryStore(), { seed, rate: 0.5 })
    for (let call = 0; call < 50; call++) await applyTo(faulty, claimOf(`c${call}`), CALL).catch(() => undefined)
    return faulty
  }
  const logs = await Promise.all([run(1), run(1), run(2)])
  const [first, again, other] = logs.map(({ faults }) => faults.log.map(({ step, fault }) => `${step.index} ${fault}`))
  assert.deepEqual(first, again)
  assert.notDeepEqual(first, other)
  assert.ok(first !== undefined && first.length > 10 && first.length < 40)
  const healed = await run(3)
  healed.faults.heal()
  for (let call = 0; call < 50; call++) await healed.claims.apply(claimOf(`h${call}`), CALL)
})
