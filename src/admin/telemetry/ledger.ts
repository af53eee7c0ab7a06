import type { LedgerEventShape } from './event-shapes.ts'
import type { Instruments } from './instruments.ts'

/** Attempts and what answered them are counted apart, so that "how often" and "how often again" are two numbers. */
export function countLedger(
  counters: Instruments['counters'],
  nameOf: (name: string) => string,
): (event: LedgerEventShape) => void {
  return (event) => {
    const operation = event.identity === undefined ? 'none' : nameOf(event.identity.operation)
    const attempt = () => counters.attempts.add(1, { operation })
    switch (event.kind) {
      case 'claimed':
        attempt()
        if (event.expired === true) counters.expired.add(1, { operation })
        return counters.claims.add(1, { operation, outcome: event.reclaimed === true ? 'reclaimed' : 'first' })
      case 'settled':
        if (event.state === 'unknown') counters.unknown.add(1, { operation, outcome: 'became' })
        return counters.settled.add(1, { operation, outcome: event.state ?? 'none' })
      case 'replayed':
        attempt()
        return counters.replays.add(1, { operation, outcome: event.state ?? 'none' })
      case 'joined':
        attempt()
        return counters.joined.add(1, { operation })
      case 'in_progress':
        attempt()
        return counters.inProgress.add(1, { operation })
      case 'retry_later':
        attempt()
        return counters.retryLater.add(1, { operation })
      case 'key_reused':
        attempt()
        return counters.conflicts.add(1, { operation })
      case 'key_expired':
        attempt()
        return counters.expired.add(1, { operation })
      case 'outcome_unknown':
        attempt()
        return counters.unknown.add(1, { operation, outcome: 'refused' })
      case 'not_authorized':
        attempt()
        return counters.refused.add(1, { operation })
      case 'lease_over':
      case 'lease_lost':
      case 'late_outcome_conflict':
      case 'record_lost':
        return counters.leases.add(1, { operation, outcome: event.kind })
      case 'outcome_not_stored':
        return counters.notStored.add(1, { operation })
      case 'lapsed':
        if (event.to === 'unknown') counters.unknown.add(1, { operation, outcome: 'became' })
        return counters.lapsed.add(1, { operation, outcome: event.to ?? 'none' })
      case 'probed':
        return counters.probes.add(1, { operation, outcome: event.answer ?? 'none' })
      case 'swept':
        return counters.swept.add(event.removed ?? 0, {})
      case 'abandoned_unknown':
      case 'resolved':
      case 'released':
      case 'forgotten':
        return counters.actions.add(1, { operation, outcome: event.kind })
      case 'settle_failed':
        return counters.background.add(1, { operation: 'settle' })
      case 'background_failed':
        return counters.background.add(1, { operation: event.what ?? 'none' })
      default:
        // `fingerprint_unverified` is in the log, and counted by the result of the attempt.
        return undefined
    }
  }
}
