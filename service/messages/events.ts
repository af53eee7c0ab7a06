import type { GuardEvent } from 'onceonly/guard'
import { type Log, scrubbed } from '../logs.ts'
import type { Recipient } from './leads.ts'

/** What the guard compares: equal content is an equal message. */
export interface GuardedMessage extends Recipient {
  readonly body: string
}

/** One line for each decision of the guard that an operator on call may need. Texts and recipients stay out. */
export function reportGuard(log: Log, event: GuardEvent<GuardedMessage>): void {
  const { hash: lockHash, message } = event
  const about = { lockHash, workspaceId: message.workspaceId }
  switch (event.kind) {
    case 'blocked':
      return log.info({
        event: 'message.api.duplicate_blocked',
        mode: event.mode,
        ...about,
        originalId: event.original.id,
        ageMs: event.ageMs,
      })
    case 'pending':
      return log.warn({ event: 'message.api.duplicate_pending', ...about, originalId: null, ageMs: event.ageMs })
    case 'unattached':
      return log.warn({ event: 'message.api.lock_unattached', ...about, originalId: null, ageMs: null })
    case 'error': {
      const error = scrubbed(event.error instanceof Error ? event.error.message : String(event.error))
      return log.error({
        event: 'message.api.duplicate_guard_error',
        ...about,
        originalId: null,
        ageMs: null,
        error,
      })
    }
  }
}
