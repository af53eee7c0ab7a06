import type { Telemetry } from 'onceonly/telemetry'
import type { Log } from './logs.ts'

/** What a store has noticed that it lost, and the line of the log about it. */
export type Loss = Parameters<Telemetry['loss']>[0] & {
  readonly line: { readonly event: string } & Readonly<Record<string, unknown>>
  readonly about: string
}

/** Writes losses down and counts them. Stores are opened before what counts, and notice nothing before they are asked. */
export function createLosses(log: Log, telemetry: () => Telemetry): (loss: Loss) => void {
  return ({ line, about, ...loss }) => {
    log.error(line, about)
    telemetry().loss(loss)
  }
}
