import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../testing/until.ts'
import { MINUTE } from './core/limits.ts'
import { createLedger } from './ledger.ts'
import type { TransactionalStore } from './store/port.ts'
import { memoryStore } from './stores/memory/index.ts'

const who = { tenant: 'acme', caller: 'web', key: 'k' }
const never = () => assert.fail('the effect ran')
const define = { name: 'pay', effect: 'external', whileRunning: { waitMs: MINUTE } } as const

test('a call with another payload takes no duplicate from the waiting one', async () => {
  const store = memoryStore()
  const elsewhere = createLedger({ store, background: false })
  const held = await elsewhere.operation<number>(define).claim(who, 1)
  assert.ok(held.kind === 'first_attempt')

  const claims: string[] = []
  const gate = Promise.withResolvers<void>()
  const apply: typeof store.claims.apply = async (request, call) => {
    if (request.kind === 'claim') {
      claims.push(request.fingerprints[0])
      if (new Set(claims).size > 1) await gate.promise
    }
    return store.claims.apply(request, call)
  }
  const gated: TransactionalStore<unknown> = { ...store, claims: { ...store.claims, apply } } as never
  const here = createLedger({ store: gated, background: false })
  const pay = here.operation<number>(define)
  const first = pay.execute(who, 1, never)
  await until('the first has asked', () => claims.length === 1)
  const other = pay.execute(who, 2, never)
  await until('the other one has asked', () => claims.length === 2)
  const twin = pay.execute(who, 1, never)
  gate.resolve()
  const refused = await other
  assert.ok(refused.kind === 'refused' && refused.error.code === 'key_reused')
  await held.lease.settle({ kind: 'succeeded', value: 'paid', pointer: null })
  for (const answer of await Promise.all([first, twin])) assert.ok('value' in answer && answer.value === 'paid')
  assert.equal(claims.length, 2, 'the twin joined the first, and asked nothing itself')
  await here.stop()
  await elsewhere.stop()
})

test('callers that waited to hear whether another payload runs share one flight when it does not', async () => {
  const store = memoryStore()
  const claims: string[] = []
  const gate = Promise.withResolvers<void>()
  const apply: typeof store.claims.apply = async (request, call) => {
    if (request.kind === 'claim') claims.push(request.fingerprints[0])
    if (claims.length === 1) await gate.promise
    return store.claims.apply(request, call)
  }
  const gated: TransactionalStore<unknown> = { ...store, claims: { ...store.claims, apply } } as never
  const ledger = createLedger({ store: gated, background: false })
  const pay = ledger.operation<number>(define)
  const hangUp = new AbortController()
  const gone = pay.execute(who, 1, never, { signal: hangUp.signal })
  await until('the first has asked', () => claims.length === 1)
  let effects = 0
  const others = [1, 2, 3].map(() => pay.execute(who, 2, async () => `paid ${++effects}`))
  // The claim is granted without a caller and given back: nothing runs under the first payload.
  hangUp.abort(new Error('hung up'))
  await assert.rejects(gone, /hung up/)
  gate.resolve()
  for (const answer of await Promise.all(others)) assert.ok('value' in answer && answer.value === 'paid 1')
  assert.equal(claims.length, 2, 'one of them asked for all')
  await ledger.stop()
})
