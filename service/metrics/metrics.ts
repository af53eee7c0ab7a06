import type { Store } from 'onceonly'
import { createStanding } from 'onceonly/admin'
import type { PrometheusMeter, Telemetry } from 'onceonly/telemetry'
import { createPrometheusMeter, createTelemetry, observeProcess } from 'onceonly/telemetry'
import type { Base } from '../store.ts'

/** The numbers of this server: what counts them, and what Prometheus reads. */
export interface Metrics {
  readonly telemetry: Telemetry
  readonly meter: PrometheusMeter
}

/** @param claims the store of what runs under a lease, where it is another one */
export function createMetrics({ store }: Base, claims: Store | null): Metrics {
  const meter = createPrometheusMeter()
  observeProcess(meter)
  const standing = createStanding(store)
  const beside = claims === null ? {} : { claims: createStanding(claims) }
  return { meter, telemetry: createTelemetry({ meter, standing, ...beside }) }
}
