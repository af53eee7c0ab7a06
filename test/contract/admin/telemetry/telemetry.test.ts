import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { context, metrics, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import { createLedger, type LedgerEvent } from 'onceonly'
import type { GuardEvent } from 'onceonly/guard'
import type { InboxEvent } from 'onceonly/inbox'
import { memoryStore } from 'onceonly/memory'
import type { RelayEvent } from 'onceonly/outbox'
import { createEngine, defineRun, type RunEvent } from 'onceonly/run'
import type { SagaEvent } from 'onceonly/saga'
import { sqliteStore } from 'onceonly/sqlite'
import {
  createPrometheusMeter,
  createTelemetry,
  type GuardEventShape,
  type InboxEventShape,
  type LedgerEventShape,
  type RelayEventShape,
  type RunEventShape,
  type SagaEventShape,
  type Telemetry,
} from 'onceonly/telemetry'
import { quietLedger } from '../../../support/quiet-ledger.ts'

/** The shapes that telemetry listens to are those of the real events: this does not compile otherwise. */
type Fits<Shape, Event extends Shape> = Event
export type Held = [
  Fits<LedgerEventShape, LedgerEvent>,
  Fits<GuardEventShape, GuardEvent<unknown>>,
  Fits<InboxEventShape, InboxEvent>,
  Fits<RelayEventShape, RelayEvent>,
  Fits<SagaEventShape, SagaEvent>,
  Fits<RunEventShape, RunEvent>,
]

async function someCommands(telemetry: Telemetry): Promise<void> {
  await using once = createLedger({ store: memoryStore(), on: telemetry.ledger, around: telemetry.around })
  const pay = once.operation<{ amount: number }>({ name: 'pay', effect: 'external', whileRunning: 'conflict' })
  const who = { tenant: 't', caller: 'c' }
  await pay.run({ ...who, key: 'one' }, { amount: 1 }, async () => {
    trace.getTracer('user').startSpan('call to the provider').end()
    // A duplicate while it runs is refused as in progress.
    await pay.execute({ ...who, key: 'one' }, { amount: 1 }, async () => 'never')
    return 'paid'
  })
  await pay.run({ ...who, key: 'one' }, { amount: 1 }, async () => 'never')
  await pay.run({ ...who, key: 'one' }, { amount: 1 }, async () => 'never')
  await pay.execute({ ...who, key: 'one' }, { amount: 2 }, async () => 'never')
  await pay.execute({ ...who, key: 'two' }, { amount: 1 }, () => Promise.reject(new Error('who knows')))
  await pay.execute({ ...who, key: 'two' }, { amount: 1 }, async () => 'never')
}

test('attempts, claims, replays, conflicts and unknowns are counted apart', async () => {
  const meter = createPrometheusMeter()
  await someCommands(createTelemetry({ meter }))
  const text = await meter.text()
  const has = (line: string) => assert.ok(text.split('\n').includes(line), `${line}\nin\n${text}`)
  has('onceonly_dedup_attempts_total{operation="pay"} 7')
  has('onceonly_dedup_claims_total{operation="pay",outcome="first"} 2')
  has('onceonly_dedup_replays_total{operation="pay",outcome="succeeded"} 2')
  has('onceonly_dedup_in_progress_total{operation="pay"} 1')
  has('onceonly_dedup_key_reuse_conflicts_total{operation="pay"} 1')
  has('onceonly_dedup_settled_total{operation="pay",outcome="unknown"} 1')
  has('onceonly_dedup_unknown_total{operation="pay",outcome="became"} 1')
  has('onceonly_dedup_unknown_total{operation="pay",outcome="refused"} 1')
  has('onceonly_dedup_effect_duration_seconds_count{operation="pay"} 2')
  has('onceonly_dedup_key_reuse_by_one_caller 1')
})

test("OpenTelemetry's own meter and tracer: the same numbers, a span per claim and effect, replays linked to the effect", async () => {
  const spans = new InMemorySpanExporter()
  const numbers = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter: numbers, exportIntervalMillis: 60_000 })
  const meters = new MeterProvider({ readers: [reader] })
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter: spans })] }))
  metrics.setGlobalMeterProvider(meters)

  const telemetry = createTelemetry({ meter: metrics.getMeter('onceonly'), tracer: trace.getTracer('onceonly') })
  await someCommands(telemetry)
  await meters.forceFlush()
  const counted = numbers.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics))
  const attempts = counted.find(({ descriptor }) => descriptor.name === 'onceonly_dedup_attempts_total')
  assert.deepEqual(
    attempts?.dataPoints.map(({ attributes, value }) => ({ ...attributes, value })),
    [{ operation: 'pay', value: 7 }],
  )
  await meters.shutdown()

  const finished = spans.getFinishedSpans()
  const named = (name: string) => finished.filter((span) => span.name === name)
  const [effect, failed] = named('onceonly.effect pay')
  assert.ok(named('onceonly.claim pay').length >= 2)
  const [child] = named('call to the provider')
  assert.equal(child?.parentSpanContext?.spanId, effect?.spanContext().spanId, 'calls of the effect are its children')
  assert.equal(failed?.status.code, 2)
  const replays = named('onceonly.replay pay')
  assert.equal(replays.length, 2)
  for (const { links, attributes } of replays) {
    assert.equal(links[0]?.context.spanId, effect?.spanContext().spanId)
    assert.equal(attributes['onceonly.record'], effect?.attributes['onceonly.record'])
  }
  assert.doesNotMatch(JSON.stringify(finished.map(({ attributes }) => attributes)), /"one"/, 'keys stay out')
})

test('steps of runs are counted by what they came to, under the name of the definition alone', async (testing) => {
  const folder = await mkdtemp(join(tmpdir(), 'onceonly-steps-'))
  const store = sqliteStore(join(folder, 'runs.db'))
  const meter = createPrometheusMeter()
  const telemetry = createTelemetry({ meter })
  const unknown = Promise.withResolvers<void>()
  let tries = 0
  const order = defineRun('order', async (run) => {
    await run.step('reserve-4711', () => 'reserved')
    await run.step('charge', { retry: { baseMs: 1 } }, () => {
      tries += 1
      if (tries < 3) throw new Error('not now')
      return 'charged'
    })
    return run.step('post', { semantics: 'once' }, () => Promise.reject(new Error('the line went dead')))
  })
  const engine = await createEngine({
    ledger: quietLedger(store),
    runs: [order],
    on(event) {
      telemetry.run(event)
      if (event.kind === 'left' && event.state === 'unknown') unknown.resolve()
    },
  })
  testing.after(async () => {
    await engine.stop()
    await store.stop()
    await rm(folder, { recursive: true, force: true })
  })
  const handle = await engine.start(order, { runId: 'o', input: null })
  await unknown.promise
  const { steps } = await handle.view()
  await engine.resolve('o', steps.at(-1)?.key ?? '', { kind: 'succeeded', result: 'posted' })
  assert.equal(await handle.result({ waitMs: 120_000 }), 'posted')
  const lines = (await meter.text()).split('\n').filter((line) => line.startsWith('onceonly_run_steps_total{'))
  const counted = new Map(lines.map((line) => line.split('} ') as [string, string]))
  const of = (outcome: string) =>
    Number(counted.get(`onceonly_run_steps_total{operation="order",outcome="${outcome}"`) ?? 0)
  assert.deepEqual([of('succeeded'), of('retrying'), of('unknown'), of('failed')], [2, 2, 1, 0], lines.join('\n'))
  // All three are taken after the operator resolved them; how often the run was released before depends on the pauses.
  assert.ok(of('replayed') >= 3, lines.join('\n'))
  assert.doesNotMatch(lines.join('\n'), /4711/, 'names of steps are as many as bodies like')
})
