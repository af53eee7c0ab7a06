import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createBusiest } from './bounded.ts'
import type { LoadShape, StandingShape } from './event-shapes.ts'
import { createPrometheusMeter } from './prometheus.ts'
import { createTelemetry } from './telemetry.ts'

const identityOf = (operation: string, key: string, caller = 'c') => ({ tenant: 't', caller, operation, key })

test('a hundred thousand keys, callers and names make no more series than there are distinct operations', async () => {
  const meter = createPrometheusMeter()
  const telemetry = createTelemetry({ meter, operations: 20 })
  for (let n = 0; n < 100_000; n++) {
    const identity = identityOf(`operation-${n % 1_000}`, `key-${n}`, `caller-${n}`)
    telemetry.ledger({ kind: 'claimed', identity, reclaimed: false })
    telemetry.ledger({ kind: 'replayed', identity, state: 'succeeded' })
    telemetry.ledger({ kind: 'key_reused', identity })
    telemetry.request({ operation: identity.operation, outcome: 'first', durationMs: 1 })
    telemetry.inbox({ kind: 'handled', consumer: `consumer-${n}` })
  }
  const lines = (await meter.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  const names = new Set(lines.map((line) => /operation="([^"]*)"/.exec(line)?.[1]))
  names.delete(undefined)
  assert.equal(names.size, 21, 'twenty names, and other')
  assert.ok(names.has('other'))
  // Five counters and one histogram of seventeen lines, for each name.
  assert.ok(lines.length < 21 * 30, `${lines.length} series`)
  assert.equal(sum(lines, 'onceonly_dedup_attempts_total'), 300_000)
  assert.equal(sum(lines, 'onceonly_dedup_claims_total'), 100_000)
  assert.equal(sum(lines, 'onceonly_dedup_replays_total'), 100_000)
})

function sum(lines: readonly string[], name: string): number {
  return lines
    .filter((line) => line.startsWith(`${name}{`))
    .reduce((total, line) => total + Number(line.split(' ').at(-1)), 0)
}

test('one frequent caller is distinguished from many that call once', () => {
  let now = 0
  const busiest = createBusiest(1_000, 3, () => now)
  for (const name of ['a', 'b', 'b', 'c', 'too many to remember', 'b']) busiest.count(name)
  assert.equal(busiest.most(), 3)
  now = 1_500
  busiest.count('a')
  assert.equal(busiest.most(), 3, 'the window before still counts')
  now = 2_500
  assert.equal(busiest.most(), 1)
  now = 9_000
  assert.equal(busiest.most(), 0)
})

test('the text is what Prometheus reads: escaped labels, cumulative buckets, gauges read on every scrape', async () => {
  const meter = createPrometheusMeter()
  meter.createCounter('odd_total', { description: 'A \\ and\na line' }).add(2, { operation: 'a"b\\c\nd', outcome: 'x' })
  const seconds = meter.createHistogram('seconds', { description: 'S', advice: { explicitBucketBoundaries: [1, 2] } })
  for (const value of [0.5, 1, 1.5, 7]) seconds.record(value, {})
  let level = 1
  meter.createObservableGauge('level', { description: 'L' }).addCallback(async (result) => result.observe(level))
  level = 5
  assert.equal(
    await meter.text(),
    [
      '# HELP odd_total A \\\\ and\\na line',
      '# TYPE odd_total counter',
      'odd_total{operation="a\\"b\\\\c\\nd",outcome="x"} 2',
      '# HELP seconds S',
      '# TYPE seconds histogram',
      'seconds_bucket{le="1"} 2',
      'seconds_bucket{le="2"} 3',
      'seconds_bucket{le="+Inf"} 4',
      'seconds_sum 10',
      'seconds_count 4',
      '# HELP level L',
      '# TYPE level gauge',
      'level 5',
      '',
    ].join('\n'),
  )
})

test('a store that is away is reported as such, and no gauge repeats an old value', async () => {
  const meter = createPrometheusMeter()
  createTelemetry({ meter, standing: () => Promise.reject(new Error('away')) })
  const text = await meter.text()
  assert.match(text, /^onceonly_store_up 0$/m)
  assert.doesNotMatch(text, /^onceonly_dedup_stale_leases/m)
  assert.doesNotMatch(text, /^onceonly_claims_up /m, 'there is none')
})

test('the load is read on every scrape, and a part that a server does not have is left out', async () => {
  const meter = createPrometheusMeter()
  let load: LoadShape = { underWay: 1, waiting: 2, bodyBytes: 3 }
  createTelemetry({ meter }).observeLoad(() => load)
  const before = await meter.text()
  for (const line of [
    'onceonly_http_requests_under_way 1',
    'onceonly_http_requests_waiting 2',
    'onceonly_http_body_bytes 3',
  ]) {
    assert.ok(before.split('\n').includes(line), line)
  }
  assert.doesNotMatch(before, /onceonly_http_commands_limit/)
  load = { ...load, most: 64 }
  assert.match(await meter.text(), /^onceonly_http_commands_limit 64$/m)
})

test('a region reports each peer that leaves it without an answer, by their pair', async () => {
  const meter = createPrometheusMeter()
  const silences = () => [
    { peer: 'tokyo', ms: 12_500 },
    { peer: 'paris', ms: 0 },
  ]
  const telemetry = createTelemetry({ meter })
  assert.doesNotMatch(await meter.text(), /^onceonly_stream_exchange_lag_seconds/m)
  telemetry.observeRegion({ region: 'frankfurt', silences })
  const text = await meter.text()
  assert.match(text, /^onceonly_stream_exchange_lag_seconds\{operation="frankfurt from tokyo"\} 12.5$/m)
  assert.match(text, /^onceonly_stream_exchange_lag_seconds\{operation="frankfurt from paris"\} 0$/m)
})

test('a second store of claims is counted with the first', async () => {
  const gaugesOf = async (claims: () => Promise<StandingShape>) => {
    const meter = createPrometheusMeter()
    const standing = async () => ({ staleLeases: 1, unknownWaiting: 2, runsStuck: 3 })
    createTelemetry({ meter, standing, claims })
    return meter.text()
  }
  const both = await gaugesOf(async () => ({ staleLeases: 10, unknownWaiting: 20 }))
  for (const line of [
    'onceonly_store_up 1',
    'onceonly_claims_up 1',
    'onceonly_dedup_stale_leases 11',
    'onceonly_dedup_unknown_waiting 22',
    'onceonly_runs_stuck 3',
  ]) {
    assert.ok(both.split('\n').includes(line), line)
  }
  const half = await gaugesOf(() => Promise.reject(new Error('away')))
  for (const line of ['onceonly_store_up 1', 'onceonly_claims_up 0', 'onceonly_runs_stuck 3'])
    assert.ok(half.split('\n').includes(line), line)
  assert.doesNotMatch(half, /^dedup_(stale|unknown_waiting)/m)
})

test('queues and schedules report what waits in them, by their names', async () => {
  const meter = createPrometheusMeter()
  const mail = { waiting: 3, blocked: 2, delayed: 1, running: 4, oldestMs: 90_000 }
  createTelemetry({ meter, standing: async () => ({ queues: { mail }, schedules: { nightly: { lateMs: 1_500 } } }) })
  const lines = (await meter.text()).split('\n').filter((line) => line.startsWith('onceonly_run_'))
  assert.deepEqual(lines, [
    'onceonly_run_queue_depth{operation="mail",outcome="waiting"} 3',
    'onceonly_run_queue_depth{operation="mail",outcome="blocked"} 2',
    'onceonly_run_queue_depth{operation="mail",outcome="delayed"} 1',
    'onceonly_run_queue_running{operation="mail"} 4',
    'onceonly_run_queue_oldest_waiting_seconds{operation="mail"} 90',
    'onceonly_run_schedule_late_seconds{operation="nightly"} 1.5',
  ])
})
