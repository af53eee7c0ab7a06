import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { type TestContext, test } from 'node:test'
import { createLedger, MINUTE, OnceError } from 'onceonly'
import { memoryStore } from 'onceonly/memory'
import { createProtect } from 'onceonly/node'
import { createRuntime } from '../../../src/runtime/runtime.ts'
import { listen } from './listen.ts'

/** A route that keeps a pointer, and a handler that attaches one and continues although that fails. */
async function route(context: TestContext, refusal: 'lease_over' | 'store_unavailable') {
  const store = memoryStore()
  let offsetMs = 0
  const apply: typeof store.claims.apply = async (request, call) => {
    const isNaming = refusal === 'store_unavailable' && request.kind === 'attach'
    if (isNaming) throw new OnceError('store_unavailable', 'The store is silent.', { applied: 'no' })
    return store.claims.apply(request, call)
  }
  const ledger = createLedger({
    store: { ...store, claims: { ...store.claims, apply } },
    runtime: { ...createRuntime(), wallMs: () => Date.now() + offsetMs, upMs: () => performance.now() + offsetMs },
    background: false,
  })
  context.after(() => ledger.stop())
  const protect = createProtect({ ledger, who: () => ({ tenant: 'acme', caller: 'ann' }) })
  const make = protect(
    {
      name: 'thing.make',
      effect: 'external',
      keep: 'pointer',
      rebuild: ({ id }) => ({ status: 201, headers: [], body: new TextEncoder().encode(id) }),
    },
    async (_request, response, { attach }) => {
      if (refusal === 'lease_over') offsetMs += 10 * MINUTE
      await assert.rejects(attach({ type: 'thing', id: 'thing-1' }), { code: refusal })
      response.writeHead(201).end('thing-1')
    },
  )
  const { port, stop } = await listen(createServer((request, response) => void make(request, response)))
  context.after(stop)
  return async () => {
    const headers = { 'idempotency-key': 'one' }
    const answer = await fetch(`http://127.0.0.1:${port}/things`, { method: 'POST', headers })
    return [answer.status, answer.headers.get('idempotent-replayed'), await answer.text()]
  }
}

for (const refusal of ['lease_over', 'store_unavailable'] as const) {
  test(`a pointer that could not be attached (${refusal}) still answers the next retry`, async (context) => {
    const ask = await route(context, refusal)
    assert.deepEqual(await ask(), [201, null, 'thing-1'])
    assert.deepEqual(await ask(), [201, 'true', 'thing-1'])
  })
}
