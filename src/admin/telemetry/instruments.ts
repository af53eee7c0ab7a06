import type { Counter, Gauge, Histogram, Meter } from './meter.ts'

interface Row {
  readonly name: string
  readonly about: string
}

/** Every counter: what happened, by operation and outcome. A consumer, a saga, a run's definition stand as operations. */
export const counters = {
  attempts: { name: 'onceonly_dedup_attempts_total', about: 'Attempts on identities, however they were answered.' },
  claims: {
    name: 'onceonly_dedup_claims_total',
    about: 'Claims that were granted, so that the effect ran: first or reclaimed.',
  },
  settled: { name: 'onceonly_dedup_settled_total', about: 'Attempts that ended, by the state they left.' },
  replays: { name: 'onceonly_dedup_replays_total', about: 'Attempts that were answered from the record.' },
  joined: {
    name: 'onceonly_dedup_joined_total',
    about: 'Attempts that waited for a running twin and share its outcome.',
  },
  inProgress: {
    name: 'onceonly_dedup_in_progress_total',
    about: 'Attempts that were refused because the first one still runs.',
  },
  retryLater: { name: 'onceonly_dedup_retry_later_total', about: 'Attempts that came before the next one is due.' },
  conflicts: {
    name: 'onceonly_dedup_key_reuse_conflicts_total',
    about: 'Attempts refused because their key was used with another payload.',
  },
  expired: {
    name: 'onceonly_dedup_expired_retries_total',
    about: 'Attempts with a key whose record has expired: refused, or run as new, while the record is not swept.',
  },
  unknown: {
    name: 'onceonly_dedup_unknown_total',
    about: 'Unknown outcomes: when one became unknown, and when an attempt was refused because of it.',
  },
  refused: {
    name: 'onceonly_dedup_replays_refused_total',
    about: 'Replays that were refused because the caller may not see them.',
  },
  leases: { name: 'onceonly_dedup_leases_lost_total', about: 'Leases that ended or were lost while their effect ran.' },
  notStored: { name: 'onceonly_dedup_outcomes_not_stored_total', about: 'Outcomes that could not be kept.' },
  lapsed: { name: 'onceonly_dedup_lapsed_total', about: 'Leases that were found past their end, by what they became.' },
  probes: { name: 'onceonly_dedup_probes_total', about: 'Questions asked about unknown outcomes, by their answer.' },
  swept: { name: 'onceonly_dedup_swept_total', about: 'Records removed because their time was over.' },
  actions: {
    name: 'onceonly_operator_actions_total',
    about: 'Actions of operators on records: resolved, released, forgotten.',
  },
  background: {
    name: 'onceonly_background_failures_total',
    about: 'Background work that failed; it is retried.',
  },
  requests: {
    name: 'onceonly_http_server_requests_total',
    about: 'Requests, by operation and by what was decided about them.',
  },
  guardBlocked: { name: 'onceonly_guard_blocked_total', about: 'Identical content that was not sent again.' },
  guardPending: {
    name: 'onceonly_guard_pending_total',
    about: 'Identical content that was refused while its original was in flight.',
  },
  guardErrors: { name: 'onceonly_guard_errors_total', about: 'Locks of the guard that could not be asked.' },
  inbox: { name: 'onceonly_inbox_messages_total', about: 'Deliveries, by consumer and by what became of them.' },
  published: { name: 'onceonly_outbox_published_total', about: 'Messages that the broker has confirmed.' },
  publishFailures: {
    name: 'onceonly_outbox_publish_failures_total',
    about: 'Messages that the broker refused, and times it was away.',
  },
  sagaEvents: { name: 'onceonly_saga_events_total', about: 'Events, by saga and by what became of them.' },
  sagaIgnores: { name: 'onceonly_saga_ignored_total', about: 'Events that a saga ignored, by the reason.' },
  runsStarted: { name: 'onceonly_runs_started_total', about: 'Runs that began, by definition.' },
  runsLeft: {
    name: 'onceonly_runs_left_total',
    about: 'Runs that a worker put down, by definition and by the state they are in.',
  },
  steps: {
    name: 'onceonly_run_steps_total',
    about: 'Steps of runs, by definition and by what they came to; `replayed` ones were handed what is recorded.',
  },
  sagaFailures: {
    name: 'onceonly_saga_failures_total',
    about: 'Instances of sagas that ended in a state which the definition calls failed.',
  },
  losses: {
    name: 'onceonly_store_losses_total',
    about:
      'Acknowledged records of PostgreSQL, or buckets of them of Redis, that are gone after a failover or an old backup.',
  },
  streamResumes: { name: 'onceonly_stream_resumes_total', about: 'Connections that continued where they had stopped.' },
  streamResets: { name: 'onceonly_stream_resets_total', about: 'Connections that had to begin again.' },
} as const satisfies Record<string, Row>

/** Every histogram, in seconds. */
export const histograms = {
  claim: { name: 'onceonly_dedup_claim_duration_seconds', about: 'How long the store took to decide a claim.' },
  effect: { name: 'onceonly_dedup_effect_duration_seconds', about: 'How long effects ran.' },
  request: { name: 'onceonly_http_server_request_duration_seconds', about: 'How long requests took.' },
  publishLag: {
    name: 'onceonly_outbox_publish_lag_seconds',
    about: 'How long messages waited from their commit to the confirmation.',
  },
} as const satisfies Record<string, Row>

/** Every gauge: read from the store when metrics are collected. */
export const gauges = {
  storeUp: { name: 'onceonly_store_up', about: '1 while the store answers.' },
  claimsUp: {
    name: 'onceonly_claims_up',
    about: '1 while the store of the claims answers, where they have one of their own.',
  },
  staleLeases: { name: 'onceonly_dedup_stale_leases', about: 'Leases past their end that no process has taken over.' },
  unknownWaiting: {
    name: 'onceonly_dedup_unknown_waiting',
    about: 'Records whose outcome is unknown, messages among them.',
  },
  outboxLag: {
    name: 'onceonly_outbox_lag_seconds',
    about: 'How long the oldest message has been waiting to be published.',
  },
  outboxPending: { name: 'onceonly_outbox_pending', about: 'Messages that wait to be published.' },
  outboxParked: { name: 'onceonly_outbox_parked_keys', about: 'Keys whose messages wait for an operator.' },
  outboxDead: {
    name: 'onceonly_outbox_dead_letters',
    about: 'Messages that were given up, or wait behind one that was.',
  },
  inboxDead: { name: 'onceonly_inbox_dead_letters', about: 'Messages that a consumer has given up.' },
  runsStuck: { name: 'onceonly_runs_stuck', about: 'Runs that are long due, or held by a worker that is gone.' },
  runsUnknown: {
    name: 'onceonly_runs_unknown',
    about: 'Steps of runs whose outcome is unknown, and parked runs: what `onceonly unknowns` lists beside records.',
  },
  queueDepth: {
    name: 'onceonly_run_queue_depth',
    about: 'Runs that wait in a queue: until they are let in, until their key has a place, or for their time.',
  },
  queueRunning: {
    name: 'onceonly_run_queue_running',
    about: 'Runs that a queue has let in and that have not ended.',
  },
  queueOldest: {
    name: 'onceonly_run_queue_oldest_waiting_seconds',
    about: 'How long the run that has waited longest in a queue has been waiting to be let in.',
  },
  scheduleLate: {
    name: 'onceonly_run_schedule_late_seconds',
    about: 'How long the next tick of a schedule has been due without being handled.',
  },
  regionSilence: {
    name: 'onceonly_stream_exchange_lag_seconds',
    about: 'How long a region has left the pulls of another unanswered, for the open room that has waited longest.',
  },
  underWay: { name: 'onceonly_http_requests_under_way', about: 'Requests that have a place, in this process.' },
  most: {
    name: 'onceonly_http_commands_limit',
    about: 'Commands that this process takes on at once: it falls while claims are slow, and the others get 503.',
  },
  waiting: { name: 'onceonly_http_requests_waiting', about: 'Requests that wait for a place, in this process.' },
  bodyBytes: {
    name: 'onceonly_http_body_bytes',
    about: 'Bytes of request bodies that are held in memory, in this process.',
  },
  reuseByOne: {
    name: 'onceonly_dedup_key_reuse_by_one_caller',
    about: 'Conflicts of the one caller who had the most, within five minutes, in this process.',
  },
  pendingByOne: {
    name: 'onceonly_guard_pending_by_one_workspace',
    about: 'Pending duplicates of the one workspace that had the most, within five minutes, in this process.',
  },
} as const satisfies Record<string, Row>

type All<T, I> = { readonly [Name in keyof T]: I }

export interface Instruments {
  readonly counters: All<typeof counters, Counter>
  readonly histograms: All<typeof histograms, Histogram>
  readonly gauges: All<typeof gauges, Gauge>
}

/** In seconds: milliseconds matter to a claim, minutes to an effect. */
export const latencyBounds: readonly number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
]

export function createInstruments(meter: Meter): Instruments {
  return {
    counters: made(counters, ({ name, about }) => meter.createCounter(name, { description: about })),
    histograms: made(histograms, ({ name, about }) =>
      meter.createHistogram(name, {
        description: about,
        unit: 's',
        advice: { explicitBucketBoundaries: [...latencyBounds] },
      }),
    ),
    gauges: made(gauges, ({ name, about }) => meter.createObservableGauge(name, { description: about })),
  }
}

function made<T extends Readonly<Record<string, Row>>, I>(rows: T, make: (row: Row) => I): All<T, I> {
  return Object.fromEntries(Object.entries(rows).map(([name, row]) => [name, make(row)])) as All<T, I>
}
