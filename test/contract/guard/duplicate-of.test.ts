import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLedger } from 'onceonly'
import { createGuard } from 'onceonly/guard'
import { memoryStore } from 'onceonly/memory'

/** A send under its lock that finds an original which has no lock, such as one that went out while the locks were away. */
test('an original without a lock answers those that wait, and begins no window', async (t) => {
  const ledger = createLedger({ store: memoryStore(), background: false })
  t.after(() => ledger.stop())
  const guard = createGuard<string>({ ledger, name: 'mail', identity: (text) => ['acme', text] })
  const original = { type: 'message', id: 'm-1' }
  const waiting = Promise.withResolvers<void>()
  let effects = 0
  const find = () =>
    guard.send('hello', async (attempt) => {
      effects++
      await waiting.promise
      attempt?.duplicateOf(original, 42_000)
      return 'found'
    })
  const sends = [find(), find(), find()]
  waiting.resolve()
  const [first, ...others] = await Promise.all(sends)
  assert.deepEqual(first, { kind: 'sent', value: 'found' })
  for (const other of others) {
    assert.ok(other.kind === 'duplicate' && other.ageMs >= 42_000, JSON.stringify(other))
    assert.deepEqual(other.original, original)
  }
  assert.equal(effects, 1, 'one of them looked')
  const next = await guard.send('hello', async () => 'sent')
  assert.deepEqual(next, { kind: 'sent', value: 'sent' }, 'the lock is free: whether it is a duplicate is decided anew')
})
