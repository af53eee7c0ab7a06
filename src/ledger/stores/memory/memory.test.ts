import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { applyTo } from '../../../testing/apply-all.ts'
import { createFakeClock } from '../../../testing/fake-clock.ts'
import { fingerprintOf } from '../../core/digest.ts'
import { isOnceError } from '../../core/errors.ts'
import { recordIdOf } from '../../core/identity.ts'
import { DAY, limits } from '../../core/limits.ts'
import type { ClaimRequest, Grant, SettleRequest } from '../../core/request.ts'
import type { Store } from '../../store/port.ts'
import { memoryStore } from './index.ts'

const CALL = { timeoutMs: 1_000 }
const TRANSACTION = { timeoutMs: 10_000, lockMs: 10_000, refuseTwinOf: null }

let claims = 0

function claimOf(key: string, fields: Partial<ClaimRequest> = {}): ClaimRequest {
  const identity = { tenant: 'acme', caller: 'shop', operation: 'pay', key }
  const policy = { onAbandoned: 'hold', retainMs: 7 * DAY, refuseMs: 0, unknownMs: 30 * DAY } as const
  const rest = { claimId: `c${++claims}`, leaseMs: 30_000, start: true, wait: false, policy }
  return { kind: 'claim', id: recordIdOf(identity), identity, fingerprints: ['v1:1:a'], ...rest, ...fields }
}

function settleOf(grant: Grant, data: string): SettleRequest {
  const to = { state: 'succeeded', outcome: { kept: 'response', data } } as const
  return { kind: 'settle', id: grant.id, grant, to, pointer: null }
}

async function grantOf(store: Store, request: ClaimRequest): Promise<Grant> {
  const applied = await store.claims.apply(request, CALL)
  assert.ok(applied !== undefined && 'decision' in applied && applied.decision.kind === 'first_attempt')
  return applied.decision.lease
}

/** Everything that is ready has run. */
const settled = () => new Promise((resolve) => setImmediate(resolve))

test('a settled record with an outcome of 200 bytes takes at most 1000 bytes', async () => {
  setFlagsFromString('--expose_gc')
  const collect = runInNewContext('gc') as () => void
  const heapBytes = () => {
    collect()
    return process.memoryUsage().heapUsed
  }
  const store = memoryStore()
  const before = heapBytes()
  const records = 20_000
  for (let index = 0; index < records; index++) {
    // As from a client: the key is joined of parts, the policy is an object of its own.
    const key = `${crypto.randomUUID()}`
    const fingerprints: [string] = [fingerprintOf(`{"n":${index}}`, 1)]
    const claimId = crypto.randomUUID().replaceAll('-', '')
    const grant = await grantOf(store, claimOf(key, { fingerprints, claimId }))
    await store.claims.apply(settleOf(grant, JSON.stringify({ index, pad: 'x'.repeat(180) })), CALL)
  }
  const perRecord = (heapBytes() - before) / records
  assert.ok(perRecord <= 1_000, `${Math.round(perRecord)} bytes`)
  assert.equal((await store.queries.count({}, CALL)).succeeded, records)
})

test('a transaction that holds the store too long is rolled back, and its session refuses everything', async () => {
  const clock = createFakeClock()
  const store = memoryStore({ clock })
  const { promise: paused, resolve: go } = Promise.withResolvers<void>()
  const late: unknown[] = []
  const running = store.transactions.run(async (session) => {
    session.tx.set('a', 1)
    await paused
    const inSession = [
      async () => session.tx.set('a', 2),
      async () => session.tx.get('a'),
      async () => session.apply(claimOf('k')),
      async () => session.savepoint(async () => 1),
    ]
    for (const use of inSession) await use().catch((error: unknown) => late.push(error))
  }, TRANSACTION)
  const waiting = store.claims.apply(claimOf('other'), { timeoutMs: 60_000 })
  clock.advance(limits.writerHoldMs)
  await assert.rejects(running, (error) => isOnceError(error, 'transaction_too_long') && error.applied === 'no')
  assert.equal((await waiting).decision.kind, 'first_attempt')
  go()
  await settled()
  assert.equal(late.length, 4)
  assert.ok(late.every((error) => isOnceError(error, 'transaction_too_long')))
  assert.equal(await store.transactions.run(async ({ tx }) => tx.get('a'), TRANSACTION), undefined)
})

test('writes of a transaction are invisible to others before it commits', async () => {
  const store = memoryStore()
  const { id } = claimOf('k')
  await store.transactions.run(async (session) => {
    await session.apply(claimOf('k'))
    assert.equal((await store.claims.read([id], CALL)).records[0], null)
    assert.equal((await store.queries.get(id, CALL)).view, null)
  }, TRANSACTION)
  assert.equal((await store.claims.read([id], CALL)).records[0]?.state, 'in_progress')
})

test('fences that a rollback gave back are not given again', async () => {
  const store = memoryStore()
  let undone = 0
  const failing = store.transactions.run(async (session) => {
    const { record } = await session.apply(claimOf('k'))
    undone = record?.fence ?? 0
    throw new Error('no')
  }, TRANSACTION)
  await assert.rejects(failing, /^Error: no$/)
  const grant = await grantOf(store, claimOf('k'))
  assert.ok(undone > 0 && grant.fence > undone)
})

test('savepoints inside savepoints: each undoes its own part', async () => {
  const store = memoryStore()
  const left = await store.transactions.run(async ({ tx, savepoint }) => {
    tx.set('a', 'outer')
    await savepoint(async () => {
      tx.set('b', 'kept')
      await savepoint(async () => {
        tx.set('a', 'undone')
        tx.delete('b')
        throw new Error('inner')
      }).catch(() => undefined)
      assert.equal(tx.get('b'), 'kept')
    })
    return [tx.get('a'), tx.get('b')]
  }, TRANSACTION)
  assert.deepEqual(left, ['outer', 'kept'])
})

test('savepoints that overlap wait for each other, and what is written beside them is not undone with them', async () => {
  const store = memoryStore()
  const { promise: written, resolve: go } = Promise.withResolvers<void>()
  await store.transactions.run(async ({ tx, savepoint }) => {
    const failing = savepoint(async () => {
      tx.set('a', 'undone')
      await written
      assert.equal(tx.get('a'), 'undone')
      throw new Error('no')
    })
    const waiting = savepoint(async () => {
      assert.equal(tx.get('a'), 'beside')
      tx.set('b', 'kept')
    })
    await settled()
    tx.set('a', 'beside')
    tx.set('c', 'beside')
    assert.deepEqual([tx.get('a'), tx.get('b')], ['beside', undefined])
    go()
    await assert.rejects(failing, /^Error: no$/)
    await waiting
  }, TRANSACTION)
  const left = await store.transactions.run(async ({ tx }) => ['a', 'b', 'c'].map((key) => tx.get(key)), TRANSACTION)
  assert.deepEqual(left, ['beside', 'kept', 'beside'])
})

test('what an effect forgot to await cannot write after its savepoint', async () => {
  const store = memoryStore()
  const { promise: paused, resolve: go } = Promise.withResolvers<void>()
  const left = await store.transactions.run(async ({ tx, savepoint }) => {
    let dangling: Promise<void> = Promise.resolve()
    await savepoint(async () => {
      dangling = paused.then(() => tx.set('a', 'late'))
    })
    go()
    await assert.rejects(dangling, (error) => isOnceError(error, 'transaction_aborted'))
    return tx.get('a')
  }, TRANSACTION)
  assert.equal(left, undefined)
})

test('a transaction ends after the savepoints that its effect did not await', async () => {
  const store = memoryStore()
  await store.transactions.run(async ({ tx, savepoint }) => {
    void savepoint(async () => {
      await settled()
      tx.set('a', 'in time')
    })
  }, TRANSACTION)
  assert.equal(await store.transactions.run(async ({ tx }) => tx.get('a'), TRANSACTION), 'in time')
})

test('short calls go before waiting transactions, and one that waits too long is refused unapplied', async () => {
  const clock = createFakeClock()
  const store = memoryStore({ clock })
  const { promise: paused, resolve: go } = Promise.withResolvers<void>()
  const first = store.transactions.run(() => paused, TRANSACTION)
  const second = store.transactions.run(async ({ apply }) => (await apply(claimOf('k'))).decision.kind, TRANSACTION)
  const short = applyTo(store, claimOf('k'), CALL)
  const impatient = applyTo(store, claimOf('late'), { timeoutMs: 100 })
  const busy = store.transactions.run(async () => assert.fail('its turn came'), { ...TRANSACTION, lockMs: 200 })
  const refusals = [
    assert.rejects(impatient, (error) => isOnceError(error, 'store_unavailable') && error.applied === 'no'),
    assert.rejects(busy, (error) => isOnceError(error, 'store_busy') && error.applied === 'no'),
  ]
  await settled()
  clock.advance(200)
  await Promise.all(refusals)
  go()
  await Promise.all([first, short])
  assert.equal(await second, 'in_progress')
  assert.equal((await store.claims.read([claimOf('late').id], CALL)).records[0], null)
})

test('a duplicate that does not wait is refused at once', async () => {
  const store = memoryStore()
  const { id } = claimOf('k')
  const { promise: paused, resolve: go } = Promise.withResolvers<void>()
  const first = store.transactions.run(async (session) => {
    await session.apply(claimOf('k'))
    await paused
  }, TRANSACTION)
  await settled()
  const twin = store.transactions.run(async () => assert.fail('it ran'), { ...TRANSACTION, refuseTwinOf: id })
  await assert.rejects(twin, (error) => isOnceError(error, 'store_busy'))
  go()
  await first
  await store.transactions.run(async () => undefined, { ...TRANSACTION, refuseTwinOf: id })
})

test('what a caller does to its own objects afterwards changes no record', async () => {
  const store = memoryStore()
  const identity = { tenant: 'acme', caller: 'shop', operation: 'pay', key: 'mine' }
  const policy = { onAbandoned: 'hold', retainMs: 1_000, refuseMs: 0, unknownMs: 1_000 } as const
  const mutable = { identity: { ...identity }, policy: { ...policy } }
  const { id } = claimOf('mine')
  await grantOf(store, claimOf('mine', mutable))
  mutable.identity.key = 'changed'
  mutable.policy.retainMs = 0 as 1_000
  const [record] = (await store.claims.read([id], CALL)).records
  assert.deepEqual([record?.identity, record?.policy], [identity, policy])
})

test('time moves only where that was asked for', async () => {
  const fixed = memoryStore()
  await assert.rejects(fixed.clock.advance(1, CALL), (error) => isOnceError(error, 'bad_option'))
  const movable = memoryStore({ testClock: true, clock: createFakeClock(1_000) })
  await movable.clock.advance(5, CALL)
  assert.equal(await movable.clock.now(CALL), 1_005)
  await assert.rejects(movable.clock.advance(-1, CALL), (error) => isOnceError(error, 'bad_option'))
})

test('stopping lets what is under way end and refuses the rest', async () => {
  const store = memoryStore()
  const { promise: paused, resolve: go } = Promise.withResolvers<void>()
  const running = store.transactions.run(async (session) => {
    await paused
    await session.apply(claimOf('k'))
    return 'done'
  }, TRANSACTION)
  const waiting = store.claims.apply(claimOf('waiting'), CALL)
  let stopped = false
  const stopping = store.stop().then(() => (stopped = true))
  await assert.rejects(applyTo(store, claimOf('new'), CALL), (error) => isOnceError(error, 'stopped'))
  await settled()
  assert.equal(stopped, false)
  go()
  assert.equal(await running, 'done')
  assert.equal((await waiting).decision.kind, 'first_attempt')
  await stopping
})

test('a sweep continues where it stopped, whatever was added and removed meanwhile', async () => {
  const store = memoryStore({ testClock: true })
  const keys = Array.from({ length: 10 }, (_, index) => `k${index}`)
  for (const key of keys) await store.claims.apply(settleOf(await grantOf(store, claimOf(key)), 'x'), CALL)
  await store.clock.advance(7 * DAY, CALL)
  const first = await store.upkeep.sweep(null, 4, CALL)
  await grantOf(store, claimOf('fresh'))
  const second = await store.upkeep.sweep(first.cursor, 4, CALL)
  const third = await store.upkeep.sweep(second.cursor, 4, CALL)
  assert.deepEqual([first.removed, second.removed, third.removed, third.cursor], [4, 4, 2, null])
  assert.equal((await store.claims.read([claimOf('fresh').id], CALL)).records[0]?.state, 'in_progress')
})

test('a caller that awaits one answer after the other lets timers fire', async () => {
  const store = memoryStore()
  let fired = false
  setTimeout(() => void (fired = true), 1)
  for (let n = 0; !fired; n++) {
    assert.ok(n < 1_000_000, 'no timer has fired')
    await store.claims.apply(claimOf(`one after the other ${n}`), CALL)
  }
  await store.stop()
})
