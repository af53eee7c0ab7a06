import type { Trouble } from './row.ts'

export const apartTroubles = {
  lostLocks: {
    system: 'messages',
    what: 'The store of the locks cannot be reached',
    command: 'explain ID',
    shows: '"guarded":false',
    page: 'FOUND',
    sees: 'sent without its lock',
    card: null,
    metric: 'onceonly_guard_errors_total{operation="messages"}',
    alert: 'OnceonlyDuplicateGuardError',
    end: 'by itself when the store is back; what was sent meanwhile had no lock, and the log names it',
  },
  lostBroker: {
    system: 'events',
    what: 'The broker cannot be reached',
    command: 'events',
    shows: '"pending":1',
    page: '/events',
    sees: '1Waiting',
    card: null,
    metric: 'onceonly_outbox_lag_seconds',
    alert: 'OnceonlyOutboxLag',
    end: 'by itself when the broker is back: what waits is published in its order',
  },
} as const satisfies Readonly<Record<string, Trouble>>

export const libraryTroubles = {
  staleLease: {
    system: 'commands',
    what: 'A process dies, and no other one does background work',
    command: 'stale',
    page: '/records?view=stale',
    sees: 'left-behind',
    card: 'Stale leases',
    metric: 'onceonly_dedup_stale_leases',
    alert: 'OnceonlyStaleInProgress',
    end: 'by itself when a process with a ledger on this store runs; or `release`',
  },
} as const satisfies Readonly<Record<string, Trouble>>
