import type { Backoff } from '../../ledger/core/retry.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import type { RelayEvent } from './events.ts'
import type { Leases } from './leases.ts'
import type { Publisher } from './port.ts'
import type { Rows } from './rows.ts'

export interface RelaySettings {
  readonly publisher: Publisher
  readonly leaseMs: number
  readonly publishMs: number
  readonly maxAttempts: number
  readonly backoff: Backoff
  readonly away: Backoff
  readonly idMs: number
  readonly forgetKeysMs: number | null
  /** The store notifies of single rows, so that it can be asked not to. */
  readonly notified: boolean
}

export interface RelayParts {
  readonly settings: RelaySettings
  readonly runtime: Runtime
  readonly leases: Leases
  readonly rows: Rows
  emit(event: RelayEvent): void
}
