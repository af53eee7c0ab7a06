import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Members } from '../ledger/store/members.ts'
import { createRuntime } from '../runtime/runtime.ts'
import type { RunEvent } from './events.ts'
import type { Holding } from './holding.ts'
import { createWorker, type WorkerOptions } from './worker.ts'

test('a failed poll for runs is reported once, however many callers waited for it', async () => {
  const store = Promise.withResolvers<never>()
  const events: RunEvent[] = []
  const holding: Partial<Holding> = {
    workers: { join: async () => {} } as unknown as Members,
    depart: async () => {},
    freeOrphans: async () => [],
    dueIn: async () => ({ dueMs: null, timeoutMs: null }),
    takeLast: () => store.promise,
  }
  const worker = createWorker({
    around: { runtime: createRuntime() } as WorkerOptions['around'],
    holding: holding as Holding,
    definitions: new Map(),
    scheduler: {
      register: async () => {},
      dueIn: async () => null,
      start: async () => ({ started: [], cancelled: [], failed: [] }),
    },
    admission: { register: async () => {}, dueIn: async () => null, take: async () => ({ runs: [], more: false }) },
    concurrency: 1,
    leaseMs: 60_000,
    pollMs: 60_000,
    emit: (event) => events.push(event),
    left: () => {},
    dropped: () => {},
  })
  await worker.begin()
  const asked = Array.from({ length: 20 }, () => worker.look())
  store.reject(new Error('away'))
  await Promise.all(asked)
  assert.deepEqual(
    events.map(({ kind }) => kind),
    ['background_failed'],
  )
  await worker.stop()
})
