export type {
  FiguresShape,
  GuardEventShape,
  InboxEventShape,
  LedgerEventShape,
  LoadShape,
  LossShape,
  RegionShape,
  RelayEventShape,
  RequestShape,
  RunEventShape,
  SagaEventShape,
  StandingShape,
  StreamEventShape,
} from './event-shapes.ts'
export { counters, gauges, histograms } from './instruments.ts'
export type {
  Counter,
  Gauge,
  Histogram,
  InstrumentOptions,
  Labels,
  Meter,
  ObservableCounter,
  Observation,
} from './meter.ts'
export { observeProcess } from './process.ts'
export type { PrometheusMeter } from './prometheus.ts'
export { createPrometheusMeter } from './prometheus.ts'
export type { Telemetry, TelemetryOptions } from './telemetry.ts'
export { createTelemetry } from './telemetry.ts'
export type { Around, Commanded, Span, SpanContext, SpanOptions, Tracer } from './trace.ts'
