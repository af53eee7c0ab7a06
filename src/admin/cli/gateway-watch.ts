import type { GatewayEvent } from '../../http/gateway/watch.ts'
import type { LedgerEvent } from '../../ledger/events.ts'
import { ledgerLine } from '../core/ledger-line.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'

/** One line of JSON for every event, in the words of the server's log. */
export function lineOf(event: GatewayEvent): string {
  return `${JSON.stringify({ time: new Date().toISOString(), ...fieldsOf(event) })}\n`
}

/** Events of the ledger that are not in the access log; null for all others. */
export function ledgerText(event: LedgerEvent): string | null {
  const { level, error, ...line } = ledgerLine(event)
  if (level === 'debug') return null
  const failure = error === undefined ? {} : { error: error instanceof Error ? error.message : String(error) }
  return `${JSON.stringify({ time: new Date().toISOString(), level, ...line, ...failure })}\n`
}

const guardEvents = {
  blocked: { level: 'info', event: 'gateway.duplicate_blocked' },
  pending: { level: 'warn', event: 'gateway.duplicate_pending' },
  error: { level: 'error', event: 'gateway.duplicate_guard_error' },
} as const

function fieldsOf(event: GatewayEvent): object {
  switch (event.kind) {
    case 'access': {
      const { kind: _, ...fields } = event
      return { level: 'info', event: 'http.access', ...fields }
    }
    case 'operator': {
      const { action, by } = event
      return { level: 'info', event: 'operator.action', action, by }
    }
    case 'guard': {
      const { route, tenant, hash: lockHash } = event
      return { ...guardEvents[event.what], route, tenant, lockHash }
    }
  }
}

export function countTo(telemetry: Telemetry): (event: GatewayEvent) => void {
  return (event) => {
    switch (event.kind) {
      case 'access':
        return telemetry.request({
          operation: event.route,
          outcome: event.decision,
          durationMs: event.durationMs,
        })
      case 'operator':
        return undefined
      case 'guard':
        return telemetry.guard(event.route, { kind: event.what }, event.tenant)
    }
  }
}

/** Lines of one moment are written together: each write is a call to the system. */
export function createLines(write: (text: string) => void): { add(line: string): void; flush(): void } {
  let waiting = ''
  function flush(): void {
    if (waiting === '') return
    const text = waiting
    waiting = ''
    write(text)
  }
  return {
    add(line) {
      if (waiting === '') setImmediate(flush)
      waiting += line
    },
    flush,
  }
}
