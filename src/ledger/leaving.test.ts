import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { test } from 'node:test'
import { createRuntime } from '../runtime/runtime.ts'
import { isOnceError, OnceError } from './core/errors.ts'
import { SECOND } from './core/limits.ts'
import { released } from './core/verdict.ts'
import type { LedgerOptions } from './ledger.ts'
import { createLedger } from './ledger.ts'
import type { TransactionalStore } from './store/port.ts'
import type { MemoryTx } from './stores/memory/index.ts'
import { memoryStore } from './stores/memory/index.ts'

const who = { tenant: 't', caller: 'c', key: 'k' }

type Options = Partial<LedgerOptions<TransactionalStore<MemoryTx>>>

function ledgerOf(context: TestContext, options: Options = {}) {
  const once = createLedger({ store: memoryStore(), background: false, ...options })
  context.after(() => once.stop())
  return once
}

/** A store whose claims wait for the gate. */
function gated() {
  const store = memoryStore()
  const gate = Promise.withResolvers<void>()
  const apply: typeof store.claims.apply = async (request, call) => {
    if (request.kind === 'claim') await gate.promise
    return store.claims.apply(request, call)
  }
  return { store: { ...store, claims: { ...store.claims, apply } }, open: gate.resolve }
}

test('the time for a decision begins again behind an attempt that was given back', async (context) => {
  const own = createRuntime()
  let passedMs = 0
  const runtime = { ...own, monotonicMs: () => own.monotonicMs() + passedMs }
  const store = memoryStore()
  // A claim takes longer than a time that is over already.
  const apply: typeof store.claims.apply = async (request, call) => {
    await new Promise((resolve) => setTimeout(resolve, 5))
    return store.claims.apply(request, call)
  }
  const once = ledgerOf(context, { store: { ...store, claims: { ...store.claims, apply } }, runtime })
  const pay = once.operation({ name: 'pay', effect: 'external' })
  const [begun, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const first = pay.execute(who, 1, async () => {
    begun.resolve()
    await end.promise
    throw released(new Error('nothing happened'))
  })
  await begun.promise
  const second = pay.run(who, 1, () => 'second', { decideMs: 10 * SECOND })
  passedMs = 20 * SECOND
  end.resolve()
  assert.equal((await first).kind, 'refused')
  assert.equal(await second, 'second')
})

test('another payload waits for a decision no longer than its caller does', async (context) => {
  const { store, open } = gated()
  const once = ledgerOf(context, { store })
  const pay = once.operation({ name: 'pay', effect: 'external' })
  const first = pay.run(who, 1, () => 'first')
  const isAway = (error: unknown) => isOnceError(error, 'store_unavailable')
  await assert.rejects(
    pay.run(who, 2, () => 'other', { decideMs: 0 }),
    isAway,
  )
  await assert.rejects(
    pay.run(who, 2, () => 'other', { decideMs: 5 }),
    isAway,
  )
  const hangUp = new AbortController()
  const left = pay.run(who, 2, () => 'other', { signal: hangUp.signal })
  hangUp.abort(new Error('left'))
  await assert.rejects(left, /left/)
  open()
  assert.equal(await first, 'first')
})

test('a nested command whose caller has left does not run', async (context) => {
  const once = ledgerOf(context)
  const outer = once.operation({ name: 'outer', effect: 'transaction' })
  const inner = once.operation({ name: 'inner', effect: 'transaction' })
  const signal = AbortSignal.abort(new Error('left'))
  await outer.run(who, 1, async () => {
    await assert.rejects(
      inner.run(who, 1, () => assert.fail('it ran'), { signal }),
      /left/,
    )
  })
})

test('an observer that waits first surrounds the effect, also one that throws', async (context) => {
  const seen: string[] = []
  const once = ledgerOf(context, {
    async around(part, _command, work) {
      await new Promise((resolve) => setImmediate(resolve))
      seen.push(`${part} begins`)
      return work().finally(() => seen.push(`${part} ends`))
    },
  })
  const pay = once.operation({ name: 'pay', effect: 'external' })
  const threw = pay.run(who, 1, () => {
    seen.push('effect')
    throw new Error('boom')
  })
  await assert.rejects(threw, (error) => isOnceError(error, 'outcome_unknown'))
  assert.deepEqual(seen, ['claim begins', 'claim ends', 'effect begins', 'effect', 'effect ends'])
})

for (const fails of ['throws', 'rejects'] as const) {
  test(`an observer that ${fails} before the effect keeps it from running, and leaves no lease`, async (context) => {
    let broken = true
    let ran = 0
    const once = ledgerOf(context, {
      around(part, _command, work) {
        if (part === 'claim' || !broken) return work()
        if (fails === 'throws') throw new Error('no observer')
        return Promise.reject(new Error('no observer'))
      },
    })
    const pay = once.operation({ name: 'pay', effect: 'repeatable' })
    const isNotDone = (error: unknown) => isOnceError(error, 'not_done')
    await assert.rejects(
      pay.run(who, 1, () => ++ran),
      isNotDone,
    )
    assert.equal(ran, 0)
    broken = false
    const lease = await pay.begin({ ...who, key: 'other' }, 1)
    assert.ok(lease.kind === 'granted')
    // In its caller's hands the effect has happened, whatever an observer does.
    broken = true
    lease.inside(() => ++ran)
    assert.deepEqual(await lease.settle({ value: ran }), { kind: 'executed', value: 1 })
  })
}

test('a stopwatch is given the times of claims and effects, and nothing is put around them', async (context) => {
  const own = createRuntime()
  let nowMs = 0
  const times: [string, number][] = []
  const around = Object.assign(() => assert.fail('something was put around it'), {
    took(part: string, _command: unknown, ms: number) {
      times.push([part, ms])
      throw new Error('a fault of the stopwatch')
    },
  })
  const once = ledgerOf(context, { around, runtime: { ...own, monotonicMs: () => nowMs } })
  const pay = once.operation({ name: 'pay', effect: 'external' })
  const lease = pay.begin(who, 1)
  assert.ok(!(lease instanceof Promise) && lease.kind === 'granted', 'the ledger waits for nothing')
  lease.inside(() => void (nowMs += 5))
  assert.deepEqual(await lease.settle({ value: 'paid' }), { kind: 'executed', value: 'paid' })
  await lease.settle({ value: 'again' })
  assert.deepEqual(times.splice(0), [
    ['claim', 0],
    ['effect', 5],
  ])
  const threw = pay.run({ ...who, key: 'other' }, 1, () => {
    nowMs += 7
    throw new Error('boom')
  })
  await assert.rejects(threw, (error) => isOnceError(error, 'outcome_unknown'))
  assert.deepEqual(times, [
    ['claim', 0],
    ['effect', 7],
  ])
})

test('a stopwatch is given the time of a claim that failed', async (context) => {
  const times: string[] = []
  const store = memoryStore()
  const apply: typeof store.claims.apply = async (request, call) => {
    if (request.kind === 'claim') throw new OnceError('store_unavailable', 'Away.', { applied: 'no' })
    return store.claims.apply(request, call)
  }
  const around = Object.assign(() => assert.fail('something was put around it'), {
    took: (part: string) => void times.push(part),
  })
  const once = ledgerOf(context, { around, store: { ...store, claims: { ...store.claims, apply } } })
  const pay = once.operation({ name: 'pay', effect: 'external' })
  await assert.rejects(pay.run(who, 1, () => assert.fail('it ran')))
  assert.deepEqual(times, ['claim'])
})
