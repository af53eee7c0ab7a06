import { createStanding } from 'onceonly/operate'
import { createPrometheusMeter, createTelemetry, type PrometheusMeter, type Telemetry } from 'onceonly/telemetry'
import type { Base } from '../store.ts'

/** The numbers of this server: whoever counts, and what Prometheus reads. */
export interface Metrics {
  readonly telemetry: Telemetry
  readonly meter: PrometheusMeter
}

export function createMetrics({ store }: Base): Metrics {
  const meter = createPrometheusMeter()
  return { meter, telemetry: createTelemetry({ meter, standing: createStanding(store) }) }
}
