import type { InboxEvent, InboxListener } from 'onceonly/inbox'
import type { RelayEvent, RelayListener } from 'onceonly/outbox'
import type { SagaEvent, SagaListener } from 'onceonly/saga'
import type { Log } from '../logs.ts'
import type { LogLevel } from '../logs-level.ts'

/** How loud each event is. Duplicates are what all of this is for: they are expected, and raise no alarm. */
const inboxLevels = {
  handled: 'debug',
  duplicate: 'debug',
  waiting: 'debug',
  redriven: 'info',
  purged: 'info',
  postponed: 'warn',
  failed: 'warn',
  warning: 'warn',
  parked: 'error',
  conflict: 'error',
  background_failed: 'error',
} as const satisfies Record<InboxEvent['kind'], LogLevel>

const relayLevels = {
  published: 'debug',
  balanced: 'debug',
  swept: 'debug',
  lease_lost: 'info',
  background_recovered: 'info',
  unavailable: 'warn',
  failed: 'warn',
  parked: 'error',
  background_failed: 'error',
} as const satisfies Record<RelayEvent['kind'], LogLevel>

const sagaLevels = {
  handled: 'debug',
  ignored: 'debug',
  deferred: 'debug',
  conflict: 'debug',
  swept: 'debug',
  background_recovered: 'info',
  warned: 'warn',
  window_too_short: 'warn',
  expired: 'warn',
  instance_failed: 'warn',
  failed: 'error',
  background_failed: 'error',
} as const satisfies Record<SagaEvent['kind'], LogLevel>

export function inboxLog(log: Log): InboxListener {
  return (event) => log[inboxLevel(event)](lineOf('inbox', event))
}

function inboxLevel(event: InboxEvent): LogLevel {
  // An effect may ask for a retry: only when that repeats it is worth a look.
  if (event.kind === 'postponed' && event.wished && (event.delivery ?? 1) === 1) return 'debug'
  return inboxLevels[event.kind]
}

export function relayLog(log: Log): RelayListener {
  return (event) => log[relayLevels[event.kind]](lineOf('relay', event))
}

export function sagaLog(log: Log): SagaListener {
  return (event) => {
    // The name of the line is `event`, as everywhere in the log.
    const named = 'event' in event ? { ...event, sagaEvent: event.event } : event
    log[sagaLevel(event)](lineOf('saga', named))
  }
}

function sagaLevel(event: SagaEvent): LogLevel {
  // Another process was faster: only when that repeats it is worth a look.
  if (event.kind === 'conflict' && event.exhausted) return 'warn'
  // An event of an unknown instance is not a duplicate.
  if (event.kind === 'ignored' && event.why === 'no_instance') return 'warn'
  return sagaLevels[event.kind]
}

/** Of background work that is tried again. */
export function failureLog(log: Log, event: string): (error: unknown) => void {
  return (err) => log.warn({ event, err })
}

function lineOf(room: string, { kind, ...fields }: { readonly kind: string; readonly error?: unknown }): object {
  const { error, ...rest } = fields
  return { ...rest, event: `${room}.${kind}`, ...(error === undefined ? {} : { err: error }) }
}
