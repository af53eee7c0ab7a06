import type { Context } from './context.ts'
import { OnceError } from './core/errors.ts'
import type { LedgerRecord } from './core/record.ts'
import type { ClaimDecision } from './core/request.ts'
import type { Command } from './declared.ts'
import type { Landing } from './flight.ts'
import { unpackFailure } from './outcome.ts'

type Refused = Exclude<ClaimDecision['kind'], 'first_attempt' | 'reclaimed' | 'replay_success' | 'replay_failure'>
export type RefusedDecision = Extract<ClaimDecision, { kind: Refused }>

/** Says no, in the words of the error table, and counts it. */
export function refusal(
  context: Context,
  command: Command,
  decision: RefusedDecision,
  record: LedgerRecord | null,
): Landing {
  noteRefusal(context, command, decision)
  return { kind: 'refused', error: refusalError(command, decision, record) }
}

const TWIN_RETRY_MS = 500

/** A twin runs in this process, or holds the record in a transaction that others cannot look into. */
export function stillRunning(context: Context, command: Command): Landing {
  const running = { kind: 'in_progress', attempt: 1, retryAfterMs: TWIN_RETRY_MS, verified: true } as const
  return refusal(context, command, running, null)
}

/** Counts and reports a claim that was not granted. */
export function noteRefusal({ events, tally }: Context, { id, identity }: Command, decision: RefusedDecision): void {
  switch (decision.kind) {
    case 'key_reused': {
      const { recorded, presented } = decision
      tally.count(id, identity, 'conflicts')
      return events.emit({ kind: 'key_reused', identity, recorded, presented })
    }
    case 'in_progress':
      tally.count(id, identity, 'inProgress')
      return events.emit({ kind: 'in_progress', identity })
    case 'retry_later':
      return events.emit({ kind: 'retry_later', identity, retryAfterMs: decision.retryAfterMs })
    case 'outcome_unknown':
      return events.emit({ kind: 'outcome_unknown', identity, since: decision.since })
    case 'key_expired':
      return events.emit({ kind: 'key_expired', identity })
    case 'identity_collision':
      return undefined
  }
}

function refusalError({ identity, id }: Command, decision: RefusedDecision, record: LedgerRecord | null): OnceError {
  const what = `${identity.operation} under this key`
  switch (decision.kind) {
    case 'key_reused': {
      const { recorded, presented } = decision
      return new OnceError('key_reused', 'The key was used before with another payload.', {
        details: { recorded, presented },
      })
    }
    case 'in_progress': {
      const { attempt, retryAfterMs } = decision
      const details = { id, attempt, pointer: record?.pointer ?? null }
      return new OnceError('in_progress', `${what} is still running.`, { retryAfterMs, details })
    }
    case 'retry_later': {
      const { retryAt, retryAfterMs } = decision
      const failure = record?.state === 'failed_retryable' ? unpackFailure(record.outcome.data).failure : null
      return new OnceError('retry_later', `${what} failed before its effect.`, {
        retryAfterMs,
        details: { retryAt, failure },
      })
    }
    case 'outcome_unknown': {
      const { since, attempts } = decision
      const details = { id, since, attempts, pointer: record?.pointer ?? null }
      return new OnceError('outcome_unknown', `The outcome of ${what} is unknown.`, { details })
    }
    case 'key_expired':
      return new OnceError('key_expired', 'The key is past its retention and is refused.')
    case 'identity_collision':
      return new OnceError('identity_collision', 'Another identity has the same record id.')
  }
}
