import type { GuardEvent } from 'onceonly/guard'
import type { Recipient } from './leads.ts'

/** What the guard compares: equal content is an equal message. */
export interface GuardedMessage extends Recipient {
  readonly body: string
}

/** One line of JSON for each decision of the guard that somebody on call may ask about. Texts and recipients stay out. */
export function reportGuard(event: GuardEvent<GuardedMessage>): void {
  const { hash: lockHash, message } = event
  const about = { lockHash, workspaceId: message.workspaceId }
  switch (event.kind) {
    case 'blocked':
      return report('message.api.duplicate_blocked', {
        mode: event.mode,
        ...about,
        originalId: event.original.id,
        ageMs: event.ageMs,
      })
    case 'pending':
      return report('message.api.duplicate_pending', { ...about, originalId: null, ageMs: event.ageMs })
    case 'error': {
      const error = event.error instanceof Error ? event.error.message : String(event.error)
      return report('message.api.duplicate_guard_error', { ...about, originalId: null, ageMs: null, error })
    }
  }
}

function report(event: string, details: Readonly<Record<string, unknown>>): void {
  console.log(JSON.stringify({ event, time: new Date().toISOString(), ...details }))
}
