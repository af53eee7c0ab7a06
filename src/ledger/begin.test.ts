import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { test } from 'node:test'
import { troubled } from '../testing/http-faults.ts'
import { isOnceError, OnceError } from './core/errors.ts'
import { final } from './core/verdict.ts'
import { createLedger } from './ledger.ts'
import type { TransactionalStore } from './store/port.ts'
import type { MemoryTx } from './stores/memory/index.ts'
import { memoryStore } from './stores/memory/index.ts'

const who = { tenant: 't', caller: 'c', key: 'k' }

function ledgerOn(context: TestContext, store: TransactionalStore<MemoryTx>) {
  const once = createLedger({ store, background: false })
  context.after(() => once.stop())
  return once
}

for (const effect of ['external', 'transaction'] as const) {
  test(`${effect}: a granted claim is settled by its caller; twins join it, retries replay`, async (context) => {
    const once = ledgerOn(context, memoryStore())
    const pay = once.operation({ name: 'pay', effect } as { name: string; effect: 'external' })
    const begun = await pay.begin(who, 1)
    assert.ok(begun.kind === 'granted')
    const twin = pay.begin(who, 1)
    const ended = await begun.settle({ value: 'paid' })
    assert.deepEqual(ended, { kind: 'executed', value: 'paid' })
    // What is said later changes nothing.
    assert.deepEqual(await begun.settle({ thrown: new Error('late') }), ended)
    assert.deepEqual(await twin, { kind: 'answered', execution: { kind: 'joined', value: 'paid' } })
    assert.equal(await pay.run(who, 1, () => assert.fail('again')), 'paid')
  })

  test(`${effect}: what was thrown is judged as in run, and an abandoned claim is free`, async (context) => {
    const once = ledgerOn(context, memoryStore())
    const pay = once.operation({ name: 'pay', effect } as { name: string; effect: 'external' })
    const left = await pay.begin(who, 1)
    assert.ok(left.kind === 'granted')
    await left.abandon(new Error('nothing begun'))
    const begun = await pay.begin(who, 2)
    assert.ok(begun.kind === 'granted', 'another payload, because the key is free again')
    const ended = await begun.settle({ thrown: final(new Error('no funds')) })
    assert.ok(ended.kind === 'failed' && ended.failure.message === 'no funds')
    const again = await pay.begin(who, 2)
    assert.ok(again.kind === 'answered' && again.execution.kind === 'failed' && again.execution.replayed)
  })
}

test('a caller that leaves before the grant begins nothing, and its twin runs its own effect', async (context) => {
  const store = memoryStore()
  const apply: typeof store.claims.apply = async (request, call) => store.claims.apply(request, call)
  const once = ledgerOn(context, { ...store, claims: { ...store.claims, apply } })
  const pay = once.operation({ name: 'pay', effect: 'external' })
  const caller = new AbortController()
  const first = Promise.resolve(pay.begin(who, 1, { signal: caller.signal }))
  const twin = pay.run(who, 1, () => 'of the twin')
  caller.abort(new Error('hung up'))
  await assert.rejects(first, /hung up/)
  assert.equal(await twin, 'of the twin')
})

test('after the grant the signal of the caller changes nothing', async (context) => {
  const once = ledgerOn(context, memoryStore())
  const pay = once.operation({ name: 'pay', effect: 'external' })
  const caller = new AbortController()
  const begun = await pay.begin(who, 1, { signal: caller.signal })
  assert.ok(begun.kind === 'granted')
  caller.abort(new Error('hung up'))
  assert.deepEqual(await begun.settle({ value: 'paid' }), { kind: 'executed', value: 'paid' })
})

test('a handed-over effect whose transaction was rolled back is not run again, and says so', async (context) => {
  let faults = 1
  const store = troubled(memoryStore(), {
    async beforeCommit() {
      if (faults-- > 0) throw new OnceError('store_busy', 'deadlock', { applied: 'no' })
    },
  })
  const once = ledgerOn(context, store as TransactionalStore<MemoryTx>)
  const place = once.operation({ name: 'place', effect: 'transaction' })
  const begun = await place.begin(who, 1)
  assert.ok(begun.kind === 'granted')
  begun.context.tx.set('row', 1)
  await assert.rejects(
    async () => begun.settle({ value: 1 }),
    (error) => {
      return isOnceError(error, 'store_unavailable') && error.applied === 'no'
    },
  )
  const value = await place.run(who, 1, ({ tx }) => tx.get('row') ?? 'nothing')
  assert.equal(value, 'nothing')
})

test('a commit whose answer was lost is found, and a handed-over effect has its outcome', async (context) => {
  let lost = 1
  const memory = memoryStore()
  const store: TransactionalStore<MemoryTx> = {
    ...memory,
    transactions: {
      async run(work, call) {
        const value = await memory.transactions.run(work, call)
        if (lost-- > 0) throw new OnceError('store_unavailable', 'The answer was lost.', { applied: 'maybe' })
        return value
      },
    },
  }
  const once = ledgerOn(context, store)
  const place = once.operation({ name: 'place', effect: 'transaction' })
  const begun = await place.begin(who, 1)
  assert.ok(begun.kind === 'granted')
  assert.deepEqual(await begun.settle({ value: 'placed' }), { kind: 'executed', value: 'placed' })
})

test('operations inside a handed-over effect join its transaction', async (context) => {
  const once = ledgerOn(context, memoryStore())
  const outer = once.operation({ name: 'outer', effect: 'transaction' })
  const inner = once.operation({ name: 'inner', effect: 'transaction' })
  const begun = await outer.begin(who, 1)
  assert.ok(begun.kind === 'granted')
  await begun.inside(() => inner.run(who, 1, ({ tx }) => tx.set('row', 1)))
  const error = new Error('broken')
  await assert.rejects(async () => begun.settle({ thrown: error }), error)
  assert.equal(await once.get({ ...who, operation: 'inner' }), null)
})

test('a signal of another realm is a signal: its caller leaves, and the claim is given back', async (context) => {
  const store = memoryStore()
  const gate = Promise.withResolvers<void>()
  const apply: typeof store.claims.apply = async (request, call) => {
    if (request.kind === 'claim') await gate.promise
    return store.claims.apply(request, call)
  }
  const once = ledgerOn(context, { ...store, claims: { ...store.claims, apply } })
  const pay = once.operation({ name: 'pay', effect: 'external' })
  const caller = new AbortController()
  const { signal } = caller
  // As a polyfill has it: the same members, but of another class.
  const foreign = {
    get aborted() {
      return signal.aborted
    },
    get reason() {
      return signal.reason as unknown
    },
    throwIfAborted: () => signal.throwIfAborted(),
    addEventListener: signal.addEventListener.bind(signal),
    removeEventListener: signal.removeEventListener.bind(signal),
  } as unknown as AbortSignal
  const left = pay.run(who, 1, () => assert.fail('it left'), { signal: foreign })
  caller.abort(new Error('hung up'))
  await assert.rejects(left, /hung up/)
  gate.resolve()
  assert.equal(await pay.run(who, 2, () => 'free again'), 'free again')
})
