import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLedger } from '../../ledger/ledger.ts'
import { memoryStore } from '../../ledger/stores/memory/index.ts'
import { answerOf } from './card.ts'

test('bytes of a stored answer are shown as text, whatever holds them', async () => {
  const store = memoryStore()
  const ledger = createLedger({ store, background: false })
  const read = ledger.operation<null>({ name: 'read', effect: 'repeatable' })
  const bytes = new TextEncoder().encode('<p>plain</p>')
  for (const [key, body] of Object.entries({ buffer: Buffer.from(bytes), bytes })) {
    await read.run({ tenant: 'acme', caller: 'shop', key }, null, async () => ({ body, count: 7n }))
    const view = await ledger.get({ tenant: 'acme', caller: 'shop', operation: 'read', key })
    assert.ok(view !== null)
    assert.deepEqual(JSON.parse(answerOf(view.record) ?? ''), { body: '<p>plain</p>', count: '7' }, key)
  }
  await ledger.stop()
  await store.stop()
})
