import assert from 'node:assert/strict'
import { createLedger } from 'onceonly'
import { createStanding } from 'onceonly/admin'
import { memoryStore } from 'onceonly/memory'
import { createPrometheusMeter, createTelemetry } from 'onceonly/telemetry'

/** Numbers for Prometheus, without a dependency; hand over a meter and a tracer of OpenTelemetry to use those instead. */
const store = memoryStore()
const meter = createPrometheusMeter()
const telemetry = createTelemetry({ meter, standing: createStanding(store) })
const once = createLedger({ store, on: telemetry.ledger, around: telemetry.around })

const pay = once.operation<{ cents: number }>({ name: 'pay', effect: 'external' })
const parts = { tenant: 'acme', caller: 'shop', key: 'order-1' }
for (let tries = 0; tries < 3; tries++) await pay.run(parts, { cents: 700 }, async () => 'paid')

// What GET /metrics answers, with `meter.contentType`.
const text = await meter.text()
assert.match(text, /^onceonly_dedup_claims_total\{operation="pay",outcome="first"\} 1$/m)
assert.match(text, /^onceonly_dedup_replays_total\{operation="pay",outcome="succeeded"\} 2$/m)
await once.stop()
console.log(
  text
    .split('\n')
    .filter((line) => /^onceonly_dedup_\w+_total/.test(line))
    .join('\n'),
)
