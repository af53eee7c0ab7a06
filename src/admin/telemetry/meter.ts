/**
 * The part of `@opentelemetry/api` that we use of a meter, typed by its shape: hand over `metrics.getMeter('onceonly')`,
 * or the small one of this room, which writes the text that Prometheus reads.
 */
export interface Meter {
  createCounter(name: string, options: InstrumentOptions): Counter
  createHistogram(name: string, options: InstrumentOptions): Histogram
  createObservableGauge(name: string, options: InstrumentOptions): Gauge
  createObservableCounter(name: string, options: InstrumentOptions): ObservableCounter
}

export interface InstrumentOptions {
  /** The help text of the metric. */
  readonly description: string
  /** The unit of its values, such as `s`. @default none */
  readonly unit?: string
  /** The bounds of a histogram's buckets. @default the meter's own */
  readonly advice?: { readonly explicitBucketBoundaries?: number[] }
}

/** There are no others: whatever is not bounded (a key, a caller, a message) is never a label. */
export type Labels = { readonly operation?: string; readonly outcome?: string }

export interface Counter {
  add(value: number, labels: Labels): void
}

export interface Histogram {
  record(value: number, labels: Labels): void
}

export interface Gauge {
  addCallback(callback: (result: Observation) => void | Promise<void>): void
}

/** A number that only grows and is kept elsewhere, such as the CPU time of the process. */
export type ObservableCounter = Gauge

export interface Observation {
  observe(value: number, labels?: Labels): void
}
