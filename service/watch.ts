import type { Listener } from 'onceonly'
import type { GuardEvent } from 'onceonly/guard'
import type { InboxListener } from 'onceonly/inbox'
import type { RelayListener } from 'onceonly/outbox'
import type { RunEvent } from 'onceonly/run'
import type { SagaListener } from 'onceonly/saga'
import type { Telemetry } from 'onceonly/telemetry'
import { inboxLog, relayLog, sagaLog } from './events/log.ts'
import type { Log } from './logs.ts'
import { ledgerLog } from './logs-ledger.ts'
import { type GuardedMessage, reportGuard } from './messages/events.ts'

/** The observer of all parts: every event becomes a line of the log and a number, from one place. */
export interface Watch {
  readonly ledger: Listener
  readonly inbox: InboxListener
  readonly relay: RelayListener
  readonly saga: SagaListener
  readonly run: (event: RunEvent) => void
  readonly stream: Telemetry['stream']
  readonly region: Telemetry['observeRegion']
  readonly guard: (event: GuardEvent<GuardedMessage>) => void
}

export const GUARD_NAME = 'messages'

export function createWatch(log: Log, telemetry: Telemetry): Watch {
  return {
    ledger: both(ledgerLog(log), telemetry.ledger),
    inbox: both(inboxLog(log), telemetry.inbox),
    relay: both(relayLog(log), telemetry.relay),
    saga: both(sagaLog(log), telemetry.saga),
    run(event) {
      if (event.kind === 'background_failed') {
        log.error({ event: 'outreach.run_failed', runId: event.runId, err: event.error }, 'run failed, retrying')
      }
      telemetry.run(event)
    },
    stream: telemetry.stream,
    region: telemetry.observeRegion,
    guard(event) {
      reportGuard(log, event)
      telemetry.guard(GUARD_NAME, event, event.message.workspaceId)
    },
  }
}

function both<E>(first: (event: E) => void, second: (event: E) => void): (event: E) => void {
  return (event) => {
    first(event)
    second(event)
  }
}
