import { performance } from 'node:perf_hooks'
import type { Meter } from './meter.ts'

interface ProcessRow {
  readonly about: string
  readonly kind: 'counter' | 'gauge'
  read(): number
}

const MICROS = 1e6
const MILLIS = 1e3
const loop = () => performance.eventLoopUtilization()

/** Under the names that dashboards for Node know. All are read when metrics are collected, so that an idle process stays idle. */
const rows: Readonly<Record<string, ProcessRow>> = {
  process_cpu_seconds_total: {
    about: 'CPU time of this process, of its own code and of the kernel for it.',
    kind: 'counter',
    read: () => (process.cpuUsage().user + process.cpuUsage().system) / MICROS,
  },
  process_resident_memory_bytes: {
    about: 'Memory of this process that is not swapped out.',
    kind: 'gauge',
    read: () => process.memoryUsage.rss(),
  },
  process_start_time_seconds: {
    about: 'When this process began, in seconds since 1970.',
    kind: 'gauge',
    read: () => performance.timeOrigin / MILLIS,
  },
  nodejs_heap_size_total_bytes: {
    about: "Size of V8's heap.",
    kind: 'gauge',
    read: () => process.memoryUsage().heapTotal,
  },
  nodejs_heap_size_used_bytes: {
    about: "What of V8's heap is in use.",
    kind: 'gauge',
    read: () => process.memoryUsage().heapUsed,
  },
  nodejs_external_memory_bytes: {
    about: "Memory of buffers and other objects outside of V8's heap.",
    kind: 'gauge',
    read: () => process.memoryUsage().external,
  },
  nodejs_eventloop_active_seconds_total: {
    about: 'How long the event loop has been at work; its growth per second is the share of a core that it uses.',
    kind: 'counter',
    read: () => loop().active / MILLIS,
  },
  nodejs_eventloop_idle_seconds_total: {
    about: 'How long the event loop has waited for something to do.',
    kind: 'counter',
    read: () => loop().idle / MILLIS,
  },
}

/**
 * Adds CPU time, memory and the event loop of this process to a meter, for programs that have no other source of them.
 *
 * @example
 * ```ts
 * import { createPrometheusMeter, observeProcess } from 'onceonly/telemetry'
 *
 * const meter = createPrometheusMeter()
 * observeProcess(meter)
 * console.log(await meter.text())
 * ```
 */
export function observeProcess(meter: Meter): void {
  for (const [name, { about, kind, read }] of Object.entries(rows)) {
    const options = { description: about }
    const made =
      kind === 'counter' ? meter.createObservableCounter(name, options) : meter.createObservableGauge(name, options)
    made.addCallback((result) => result.observe(read()))
  }
}
