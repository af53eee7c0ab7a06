import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Lease } from '../../ledger/store/leases.ts'
import { createTestRuntime } from '../../runtime/test-runtime.ts'
import type { Receipt } from '../inbox/receipt.ts'
import { createDeliverer } from './deliver.ts'
import { sagaLimits } from './limits.ts'
import type { Machine } from './machine.ts'
import type { Pending, Taken } from './pending.ts'

/** Two events of one instance, the first of which is handled until `handled` is resolved. */
function scene() {
  const runtime = createTestRuntime()
  const rows = ['a', 'b'].map((token): Taken => {
    return { token, fence: 1, id: 'one', event: 'Late', body: '1', deliveries: 1 }
  })
  const renewed: string[][] = []
  const lost = new Set<string>()
  const renew = async (leases: readonly Lease<'token'>[]) => {
    const tokens = leases.map(({ token }) => String(token))
    renewed.push(tokens)
    return new Set(tokens.filter((token) => !lost.has(token)))
  }
  const pending: Partial<Pending> = {
    leases: { key: 'token', renew } as unknown as Pending['leases'],
    take: async () => rows,
  }
  const first = Promise.withResolvers<void>()
  const handled: string[] = []
  const deliverer = createDeliverer({
    machine: { name: 'orders' } as Machine,
    pending: pending as Pending,
    runtime,
    async handle({ id }) {
      handled.push(id)
      if (handled.length === 1) await first.promise
      return { kind: 'not_ours' } as Receipt
    },
    failed: (error) => assert.fail(String(error)),
    recovered: () => assert.fail('nothing had failed'),
  })
  return { runtime, renewed, lost, first, handled, deliverer }
}

test('what was taken is renewed until it has been delivered, also while it waits for its turn', async () => {
  const { runtime, renewed, first, handled, deliverer } = scene()
  const round = deliverer.round()
  await runtime.advance(2 * sagaLimits.dueLeaseMs)
  assert.ok(renewed.length >= 5)
  assert.deepEqual(renewed[0], ['a', 'b'])
  first.resolve()
  assert.equal(await round, 2)
  assert.equal(handled.length, 2)
  const before = renewed.length
  await runtime.advance(sagaLimits.dueLeaseMs)
  assert.equal(renewed.length, before)
})

test('what another process has taken meanwhile is left to it', async () => {
  const { runtime, lost, first, handled, deliverer } = scene()
  const round = deliverer.round()
  lost.add('b')
  await runtime.advance(sagaLimits.dueLeaseMs)
  first.resolve()
  await round
  assert.equal(handled.length, 1)
})
