import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runInNewContext } from 'node:vm'
import { createLedger } from '../../ledger/ledger.ts'
import { memoryStore } from '../../ledger/stores/memory/index.ts'
import type { Incoming } from './exchange.ts'
import { createRoute } from './protect.ts'
import type { Who } from './route.ts'

const incoming: Incoming = {
  method: 'POST',
  target: '/things',
  header: (name) => (name === 'idempotency-key' ? ['k'] : []),
  headers: () => [],
  body: () => ({ bytes: Buffer.alloc(0) }),
}

/** As under Jest, and as the queries of database libraries: no promise of ours, but it can be waited for. */
const { resolve } = runInNewContext('({ resolve: (value) => Promise.resolve(value) })') as {
  resolve(value: Who): Promise<Who>
}

test('a caller that has to be waited for may be any thenable, and the route answers with a promise', async (context) => {
  const ledger = createLedger({ store: memoryStore(), background: false })
  context.after(() => ledger.stop())
  const who = () => resolve({ tenant: 't', caller: 'c' })
  assert.ok(!(who() instanceof Promise))
  const route = createRoute({ ledger, who }, { name: 'thing.make', effect: 'repeatable' })
  const begun = route.begin(incoming, {})
  assert.ok(begun instanceof Promise)
  const running = await begun
  assert.ok(running.kind === 'run')
  await running.finish({ status: 201, headers: [], body: Buffer.alloc(0) })
  assert.equal(
    (await ledger.get({ tenant: 't', caller: 'c', operation: 'thing.make', key: 'k' }))?.record.state,
    'succeeded',
  )
})
