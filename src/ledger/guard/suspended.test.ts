import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRuntime } from '../../runtime/runtime.ts'
import { MINUTE } from '../core/limits.ts'
import { createLedger } from '../ledger.ts'
import { memoryStore } from '../stores/memory/index.ts'
import { createGuard } from './guard.ts'

test('a sender that was suspended past its lease leaves its original under the lock', async (context) => {
  let offsetMs = 0
  const runtime = { ...createRuntime(), wallMs: () => Date.now() + offsetMs, upMs: () => performance.now() + offsetMs }
  const ledger = createLedger({ store: memoryStore(), runtime, background: false })
  context.after(() => ledger.stop())
  const guard = createGuard<string>({ ledger, name: 'mail', identity: (text) => ['acme', text], waitMs: 0 })
  const original = { type: 'mail', id: 'm-1' }
  await guard.send('hello', async (attempt) => {
    assert.ok(attempt !== null)
    offsetMs += 10 * MINUTE
    await assert.rejects(attempt.attach(original), { code: 'lease_over' })
  })
  const verdict = await guard.send('hello', async () => assert.fail('it was sent twice'))
  assert.ok(verdict.kind === 'duplicate')
  assert.deepEqual(verdict.original, original)
})
