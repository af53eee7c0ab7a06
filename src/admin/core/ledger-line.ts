import { keyHashOf } from '../../ledger/core/digest.ts'
import { type Identity, recordIdOf } from '../../ledger/core/identity.ts'
import type { LedgerEvent } from '../../ledger/events.ts'

/** The log level of each event of the ledger. Events that the access log has as well are `debug`. */
const levels = {
  claimed: 'debug',
  settled: 'debug',
  replayed: 'debug',
  joined: 'debug',
  in_progress: 'debug',
  retry_later: 'debug',
  swept: 'debug',
  key_expired: 'info',
  probed: 'info',
  resolved: 'info',
  released: 'info',
  forgotten: 'info',
  key_reused: 'warn',
  not_authorized: 'warn',
  outcome_unknown: 'warn',
  fingerprint_unverified: 'warn',
  outcome_not_stored: 'warn',
  lease_over: 'warn',
  lease_lost: 'warn',
  lapsed: 'warn',
  abandoned_unknown: 'error',
  late_outcome_conflict: 'error',
  record_lost: 'error',
  settle_failed: 'error',
  background_failed: 'error',
} as const satisfies Record<LedgerEvent['kind'], string>

/** An event of the ledger as a line of a log: of an identity everything but its key. */
export interface LedgerLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  /** `ledger.` and the kind of the event. */
  readonly event: string
  readonly tenant?: string
  readonly caller?: string
  readonly operation?: string
  readonly keyHash?: string
  /** The id of its record, which `onceonly find` and the console take; left out at the level `debug`. */
  readonly record?: string
  readonly error?: unknown
  readonly [more: string]: unknown
}

/** The fields of a log line for an event of a ledger, with its level; without fingerprints and payloads. */
export function ledgerLine(event: LedgerEvent): LedgerLine {
  const { kind, ...fields } = event
  // Fingerprints of a payload say nothing to a reader, and something to who guesses payloads.
  const { identity, recorded: _recorded, presented: _presented, ...rest } = fields as Fields
  // It waits for a person, and no other line says so.
  const level = event.kind === 'settled' && event.state === 'unknown' ? 'warn' : levels[kind]
  const name = identity === undefined ? {} : named(identity)
  // Its digest would cost every command something, for lines that are hardly ever written.
  const record = identity === undefined || level === 'debug' ? {} : { record: recordIdOf(identity) }
  return { level, event: `ledger.${kind}`, ...name, ...record, ...rest }
}

type Fields = Readonly<Record<string, unknown>> & { readonly identity?: Identity }

function named({ tenant, caller, operation, key }: Identity) {
  return { tenant, caller, operation, keyHash: keyHashOf(key) }
}
