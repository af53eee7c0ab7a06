import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLedger } from './ledger.ts'
import { memoryStore } from './stores/memory/index.ts'

test('a scope fixes parts of the identity, and its calls give the rest', async (context) => {
  const once = createLedger({ store: memoryStore(), background: false })
  context.after(() => once.stop())
  const acme = once.scope({ tenant: 'acme' })
  const pay = acme.operation<number>({ name: 'pay', effect: 'external' })
  const place = acme.scope({ caller: 'shop' }).operation({ name: 'place', effect: 'transaction' })
  assert.equal(await pay.run({ caller: 'shop', key: 'a' }, 1, () => 'paid'), 'paid')
  assert.equal(await place.run({ key: 'a' }, 1, ({ tx }) => tx.get('row') ?? 'placed'), 'placed')
  const identity = { tenant: 'acme', caller: 'shop', key: 'a' }
  assert.equal((await once.get({ ...identity, operation: 'pay' }))?.record.state, 'succeeded')
  assert.equal((await once.get({ ...identity, operation: 'place' }))?.record.state, 'succeeded')
  // @ts-expect-error -- the caller is missing.
  const incomplete = pay.run({ key: 'b' }, 1, () => 'paid')
  await assert.rejects(incomplete, { code: 'bad_identity' })
})

test('a declared operation takes a scope as well, with its claims', async (context) => {
  const once = createLedger({ store: memoryStore(), background: false })
  context.after(() => once.stop())
  const pay = once.operation({ name: 'pay', effect: 'external' })
  const own = pay.scope({ tenant: 'acme', caller: 'shop' })
  const claimed = await own.claim({ key: 'a' }, 1)
  assert.ok(claimed.kind === 'first_attempt')
  await claimed.lease.settle({ kind: 'succeeded', value: 'paid', pointer: null })
  assert.equal(await pay.run({ tenant: 'acme', caller: 'shop', key: 'a' }, 1, () => 'again'), 'paid')
})

test('a call cannot leave its scope, and a scope is checked when it is made', async (context) => {
  const once = createLedger({ store: memoryStore(), background: false })
  context.after(() => once.stop())
  const pay = once.operation({ name: 'pay', effect: 'external' }).scope({ tenant: 'acme' })
  const never = () => assert.fail('the effect ran')
  await assert.rejects(pay.run({ tenant: 'other', caller: 'shop', key: 'a' } as never, 1, never), {
    code: 'bad_identity',
    message: /^The identity's `tenant` is fixed by the scope\. /,
  })
  assert.throws(() => pay.scope({ tenant: 'other' }), { code: 'bad_identity' })
  assert.throws(() => once.scope({ tenant: ' ' }), { code: 'bad_identity' })
  assert.throws(() => once.scope({ tenant: undefined } as never), { code: 'bad_identity' })
  assert.throws(() => once.scope({ tennant: 'acme' } as never), {
    message: '`scope` has no option `tennant`. Did you mean `tenant`?',
  })
})
