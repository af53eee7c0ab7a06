import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRuntime } from '../runtime/runtime.ts'
import type { RunEvent } from './events.ts'
import type { Holding } from './holding.ts'
import { createWorker, type WorkerOptions } from './worker.ts'

test('a look for runs that fails is told once, however many asked for it', async () => {
  const store = Promise.withResolvers<never>()
  const told: RunEvent[] = []
  const holding: Partial<Holding> = {
    arrive: async () => {},
    depart: async () => {},
    freeOrphans: async () => [],
    takeLast: () => store.promise,
  }
  const worker = createWorker({
    around: { runtime: createRuntime() } as WorkerOptions['around'],
    holding: holding as Holding,
    definitions: new Map(),
    concurrency: 1,
    leaseMs: 60_000,
    pollMs: 60_000,
    emit: (event) => told.push(event),
    left: () => {},
  })
  await worker.begin()
  const asked = Array.from({ length: 20 }, () => worker.look())
  store.reject(new Error('away'))
  await Promise.all(asked)
  assert.deepEqual(
    told.map(({ kind }) => kind),
    ['background_failed'],
  )
  await worker.stop()
})
