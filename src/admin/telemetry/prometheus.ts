import type { Gauge, InstrumentOptions, Labels, Meter, Observation } from './meter.ts'

/** A meter that keeps its numbers in this process and writes them down when Prometheus asks. */
export interface PrometheusMeter extends Meter {
  /** What `text` is, for the header of the answer. */
  readonly contentType: string
  text(): Promise<string>
  /** Over all labels: of a counter its sum, of a histogram (`NAME_sum`, `NAME_count`) either. 0 for what never happened. */
  total(name: string): number
  /** Of a histogram over all labels, how many values fell into each of its buckets; the last one is beyond all bounds. */
  buckets(name: string): readonly number[]
}

/** Something that is written as one family: its help, its type, its lines. */
interface Family {
  readonly name: string
  readonly kind: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  lines(): Promise<readonly string[]>
  total?(part: 'sum' | 'count'): number
  buckets?(): readonly number[]
}

/** From a millisecond, a hit in memory, to ten seconds, where callers have given up. */
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/**
 * A meter without dependencies, which writes the text that Prometheus reads.
 *
 * @example
 * ```ts
 * import { createServer } from 'node:http'
 * import { createPrometheusMeter } from 'onceonly/telemetry'
 *
 * const meter = createPrometheusMeter()
 * createServer(async (_request, response) => {
 *   response.writeHead(200, { 'content-type': meter.contentType }).end(await meter.text())
 * })
 * ```
 */
export function createPrometheusMeter(): PrometheusMeter {
  const families = new Map<string, Family>()
  function add<F extends Family>(family: F): F {
    if (families.has(family.name)) throw new Error(`The metric ${family.name} is declared twice.`)
    families.set(family.name, family)
    return family
  }
  return {
    contentType: 'text/plain; version=0.0.4; charset=utf-8',
    createCounter: (name, options) => add(counter(name, options)),
    createHistogram: (name, options) => add(histogram(name, options)),
    createObservableGauge: (name, options) => add(observed('gauge', name, options)),
    createObservableCounter: (name, options) => add(observed('counter', name, options)),
    async text() {
      const written = await Promise.all([...families.values()].map(familyText))
      return written.join('')
    },
    total(name) {
      const [, family = name, part = 'sum'] = /^(.*)_(sum|count)$/.exec(name) ?? []
      return families.get(family)?.total?.(part === 'count' ? 'count' : 'sum') ?? 0
    },
    buckets: (name) => families.get(name)?.buckets?.() ?? [],
  }
}

async function familyText(family: Family): Promise<string> {
  const lines = await family.lines()
  if (lines.length === 0) return ''
  const help = family.help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
  return `# HELP ${family.name} ${help}\n# TYPE ${family.name} ${family.kind}\n${lines.join('\n')}\n`
}

/** One cell for each pair of labels, found without writing them down: this is asked for every event. */
interface Series<T> {
  of(labels: Labels): T
  /** With the labels as they are written. */
  all(): [labels: string, cell: T][]
}

function createSeries<T>(make: () => T): Series<T> {
  const cells = new Map<string | undefined, Map<string | undefined, T>>()
  return {
    of({ operation, outcome }) {
      let outcomes = cells.get(operation)
      if (outcomes === undefined) cells.set(operation, (outcomes = new Map()))
      let cell = outcomes.get(outcome)
      if (cell === undefined) outcomes.set(outcome, (cell = make()))
      return cell
    },
    all: () =>
      [...cells].flatMap(([operation, outcomes]) =>
        [...outcomes].map(([outcome, cell]): [string, T] => [labelText(operation, outcome), cell]),
      ),
  }
}

function counter(name: string, { description }: InstrumentOptions) {
  const series = createSeries(() => ({ value: 0 }))
  return {
    name,
    kind: 'counter' as const,
    help: description,
    add(value: number, labels: Labels) {
      series.of(labels).value += value
    },
    lines: async () => series.all().map(([labels, { value }]) => line(name, labels, value)),
    total: () => series.all().reduce((sum, [, { value }]) => sum + value, 0),
  }
}

interface Buckets {
  readonly counts: number[]
  sum: number
  count: number
}

function histogram(name: string, { description, advice }: InstrumentOptions) {
  const bounds = advice?.explicitBucketBoundaries ?? SECONDS
  const series = createSeries((): Buckets => ({ counts: bounds.map(() => 0), sum: 0, count: 0 }))
  return {
    name,
    kind: 'histogram' as const,
    help: description,
    record(value: number, labels: Labels) {
      const buckets = series.of(labels)
      let place = 0
      while (place < bounds.length && value > (bounds[place] ?? 0)) place++
      if (place < bounds.length) buckets.counts[place] = (buckets.counts[place] ?? 0) + 1
      buckets.sum += value
      buckets.count += 1
    },
    lines: async () => series.all().flatMap(([labels, buckets]) => histogramLines(name, labels, bounds, buckets)),
    total: (part: 'sum' | 'count') => series.all().reduce((sum, [, buckets]) => sum + buckets[part], 0),
    buckets: () => {
      const all = series.all().map(([, buckets]) => buckets)
      const inside = bounds.map((_, place) => all.reduce((sum, { counts }) => sum + (counts[place] ?? 0), 0))
      const whole = all.reduce((sum, { count }) => sum + count, 0)
      return [...inside, whole - inside.reduce((sum, count) => sum + count, 0)]
    },
  }
}

function histogramLines(name: string, labels: string, bounds: readonly number[], buckets: Buckets): string[] {
  let below = 0
  const upTo = (bound: string, count: number) =>
    line(`${name}_bucket`, `${labels}${labels === '' ? '' : ','}le="${bound}"`, count)
  const lines = bounds.map((bound, place) => upTo(String(bound), (below += buckets.counts[place] ?? 0)))
  return [
    ...lines,
    upTo('+Inf', buckets.count),
    line(`${name}_sum`, labels, buckets.sum),
    line(`${name}_count`, labels, buckets.count),
  ]
}

function observed(kind: 'gauge' | 'counter', name: string, { description }: InstrumentOptions): Family & Gauge {
  const callbacks: ((result: Observation) => void | Promise<void>)[] = []
  return {
    name,
    kind,
    help: description,
    addCallback: (callback) => void callbacks.push(callback),
    async lines() {
      const series = createSeries(() => ({ value: 0 }))
      for (const callback of callbacks) {
        await callback({ observe: (value, labels = {}) => void (series.of(labels).value = value) })
      }
      return series.all().map(([labels, { value }]) => line(name, labels, value))
    },
  }
}

function line(name: string, labels: string, value: number): string {
  return labels === '' ? `${name} ${value}` : `${name}{${labels}} ${value}`
}

function labelText(operation: string | undefined, outcome: string | undefined): string {
  const first = operation === undefined ? [] : [`operation="${escaped(operation)}"`]
  const second = outcome === undefined ? [] : [`outcome="${escaped(outcome)}"`]
  return [...first, ...second].join(',')
}

function escaped(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}
