import type { LedgerEvent, Listener } from 'onceonly'
import { keyHashOf, type Log } from './logs.ts'
import type { LogLevel } from './logs-level.ts'

/** How loud each event of the ledger is. What the access log tells anyway is for those who look closely. */
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
} as const satisfies Record<LedgerEvent['kind'], LogLevel>

/** Writes down what happens in the ledger; of an identity everything but its key. */
export function ledgerLog(log: Log): Listener {
  return (event) => log[levels[event.kind]](lineOf(event))
}

function lineOf(event: LedgerEvent): object {
  const { kind, ...told } = event
  const {
    identity,
    error,
    recorded: _recorded,
    presented: _presented,
    ...rest
  } = told as Partial<Record<'error' | 'recorded' | 'presented', unknown>> & {
    readonly identity?: Extract<LedgerEvent, { kind: 'claimed' }>['identity']
  }
  return {
    event: `ledger.${kind}`,
    ...(identity === undefined
      ? {}
      : {
          workspace: identity.tenant,
          caller: identity.caller,
          operation: identity.operation,
          keyHash: keyHashOf(identity.key),
        }),
    ...rest,
    ...(error === undefined ? {} : { err: error }),
  }
}
