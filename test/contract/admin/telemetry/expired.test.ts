import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLedger, DAY } from 'onceonly'
import { memoryStore } from 'onceonly/memory'
import { createPrometheusMeter, createTelemetry } from 'onceonly/telemetry'

test('a retry with an expired key is counted apart', async () => {
  const meter = createPrometheusMeter()
  const store = memoryStore({ testClock: true })
  await using once = createLedger({ store, background: false, on: createTelemetry({ meter }).ledger })
  const pay = once.operation({ name: 'pay', effect: 'repeatable', retainMs: DAY, afterExpiry: 'refuse' })
  const who = { tenant: 't', caller: 'c', key: 'k' }
  await pay.run(who, 1, () => 'paid')
  await store.clock.advance(DAY, { timeoutMs: 5_000 })
  assert.equal((await pay.execute(who, 1, () => 'never')).kind, 'refused')
  const lines = (await meter.text()).split('\n')
  for (const line of [
    'onceonly_dedup_expired_retries_total{operation="pay"} 1',
    'onceonly_dedup_attempts_total{operation="pay"} 2',
  ]) {
    assert.ok(lines.includes(line), line)
  }
})
