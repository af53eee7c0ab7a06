import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OnceError } from '../../ledger/core/errors.ts'
import { createLedger } from '../../ledger/ledger.ts'
import { memoryStore } from '../../ledger/stores/memory/index.ts'
import type { Incoming } from './exchange.ts'
import { createRoute } from './protect.ts'

const headers: Readonly<Record<string, string>> = { 'idempotency-key': 'k', 'content-type': 'application/json' }
const incoming: Incoming = {
  method: 'POST',
  target: '/orders',
  header: (name) => (headers[name] === undefined ? [] : [headers[name]]),
  headers: () => Object.entries(headers),
  body: () => ({ bytes: Buffer.from('{}') }),
}
const created = (text: string) => ({ status: 201, headers: [], body: Buffer.from(text) })
const who = () => ({ tenant: 't', caller: 'c' })
const definition = { name: 'order.place', effect: 'transaction' } as const

test('a transaction that was undone answers with what another process has committed meanwhile', async (context) => {
  const store = memoryStore()
  const other = createLedger({ store, background: false })
  const lost = new OnceError('store_unavailable', 'The connection broke during COMMIT.', { applied: 'maybe' })
  let isFirst = true
  const run: typeof store.transactions.run = async (work, call) => {
    if (!isFirst) return store.transactions.run(work, call)
    isFirst = false
    const undone = store.transactions.run(async (session) => {
      await work(session)
      throw lost
    }, call)
    await assert.rejects(undone)
    const begun = await createRoute({ ledger: other, who }, definition).begin(incoming, {})
    assert.ok(begun.kind === 'run')
    await begun.finish(created('order 6'), undefined)
    throw lost
  }
  const once = createLedger({ store: { ...store, transactions: { ...store.transactions, run } }, background: false })
  context.after(async () => {
    await once.stop()
    await other.stop()
  })
  const begun = await createRoute({ ledger: once, who }, definition).begin(incoming, {})
  assert.ok(begun.kind === 'run')
  const instead = await begun.finish(created('order 5'), undefined)
  assert.equal(Buffer.from(instead?.body ?? '').toString(), 'order 6')
})
