import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defaults, limits } from './limits.ts'

test('every bound is a number that every store can hold', () => {
  for (const [name, value] of Object.entries({ ...defaults, ...limits })) {
    assert.ok(Number.isFinite(value) && value >= 0 && value <= Number.MAX_SAFE_INTEGER, name)
    if (!name.endsWith('Share')) assert.ok(Number.isInteger(value), name)
  }
})

test('the bounds fit each other', () => {
  assert.ok(limits.leaseMinMs <= defaults.leaseMs && defaults.leaseMs <= limits.leaseMaxMs)
  // Two heartbeats may be lost before the lease ends.
  assert.ok(3 * limits.heartbeatShare <= 1)
  // An attempt that still runs, or still tries to settle, meets the trace of its release.
  assert.ok(defaults.maxRunMs + limits.settleRetryMs < Math.min(limits.releasedMs, limits.vacantMs))
  // It also cannot outlive the record of its own success.
  assert.ok(defaults.maxRunMs + limits.settleRetryMs < defaults.retainMs)
  assert.ok(limits.batchLockMs < limits.storeCallMs)
  assert.ok(limits.transactionLockMs <= limits.storeCallMs && limits.writerHoldMs <= limits.transactionLockMs)
  assert.ok(defaults.outcomeBytes <= limits.batchBytes)
  assert.ok(limits.joinPollBaseMs < limits.joinPollCapMs && limits.probeBaseMs < limits.probeCapMs)
  assert.ok(defaults.retryBaseMs < defaults.retryCapMs)
  assert.ok(limits.replayCacheMs <= 1_000)
})
