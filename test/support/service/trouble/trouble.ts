/**
 * Who is asked about a trouble: servers on their store, a gateway on its own, a server that has lost Redis and its broker, or
 * a process that has only the library.
 */
export type Place = 'server' | 'gateway' | 'apart' | 'library'

/** One thing that goes wrong, and what every interface must say of it. */
export interface Trouble {
  readonly system: 'messages' | 'commands' | 'events' | 'imports' | 'runs' | 'chat' | 'gateway' | 'store'
  readonly what: string
  readonly at: Place
  /** Of the command line, without `onceonly`; the console answers it by the same row of the table. `ID` is its id. */
  readonly command: string
  /** What the command shows of it, as JSON; its id, when left out. */
  readonly shows?: string
  /** The series that counts it, as Prometheus writes it; null where none does. */
  readonly metric: string | null
  /** What its value must be more than, for the alert to fire; 0, when left out. */
  readonly above?: number
  /** The rule that fires; null where no person is needed. */
  readonly alert: string | null
  /** How it ends. */
  readonly end: string
}

/** By a name for each, so that the program that makes them leaves none out. */
export const troubles = {
  lostMail: {
    system: 'messages',
    what: 'The answer of a provider is lost',
    at: 'server',
    command: 'unknowns',
    metric: 'onceonly_dedup_unknown_waiting',
    alert: 'OnceonlyUnknownOutcomesWaiting',
    end: '`resolve --id … --to …`, after asking the provider',
  },
  refusedMail: {
    system: 'messages',
    what: 'A provider refuses a message',
    at: 'server',
    command: 'records --operation messages.deliver --state failed_terminal',
    metric: 'onceonly_dedup_settled_total{operation="messages.deliver",outcome="failed_terminal"}',
    alert: null,
    end: 'it has ended: the sender got the reason',
  },
  laterMail: {
    system: 'messages',
    what: 'A provider says “not now”',
    at: 'server',
    command: 'records --operation messages.deliver --state failed_retryable',
    metric: 'onceonly_dedup_settled_total{operation="messages.deliver",outcome="failed_retryable"}',
    alert: null,
    end: 'by itself: it is tried again for a day',
  },
  sameText: {
    system: 'messages',
    what: 'The same text is sent again without a key',
    at: 'server',
    command: 'records --operation guard.messages',
    metric: 'onceonly_guard_blocked_total{operation="messages",outcome="lock_resolved"}',
    alert: null,
    end: 'it was not sent; `forget` frees the content',
  },
  lostLocks: {
    system: 'messages',
    what: 'The store of the locks cannot be reached',
    at: 'apart',
    command: 'explain ID',
    shows: '"guarded":false',
    metric: 'onceonly_guard_errors_total{operation="messages"}',
    alert: 'OnceonlyDuplicateGuardError',
    end: 'by itself when the store is back; what was sent meanwhile had no lock, and the log names it',
  },
  reusedKey: {
    system: 'commands',
    what: 'A caller reuses its keys with other payloads',
    at: 'server',
    command: 'conflicts',
    metric: 'onceonly_dedup_key_reuse_by_one_caller',
    alert: 'OnceonlyFrequentKeyReuse',
    end: 'the caller mends how it makes keys',
  },
  retriedEarly: {
    system: 'commands',
    what: 'A retry comes while the first attempt runs in another process',
    at: 'server',
    command: 'conflicts',
    metric: 'onceonly_dedup_in_progress_total{operation="messages.send"}',
    alert: null,
    end: 'by itself: a later retry gets the response',
  },
  takenValue: {
    system: 'commands',
    what: 'Another key asks for what exists already',
    at: 'server',
    command: 'explain taken-2',
    metric: 'onceonly_dedup_settled_total{operation="case.escalate",outcome="failed_terminal"}',
    alert: null,
    end: 'it was refused: `explain` names what stood in the way',
  },
  deadProcess: {
    system: 'commands',
    what: 'A process dies in the middle of an external effect',
    at: 'server',
    command: 'unknowns',
    metric: 'onceonly_dedup_unknown_waiting',
    alert: 'OnceonlyUnknownOutcomesWaiting',
    end: '`resolve --id … --to …`, or the `probe` of its operation',
  },
  staleLease: {
    system: 'commands',
    what: 'A process dies, and no other one does background work',
    at: 'library',
    command: 'stale',
    metric: 'onceonly_dedup_stale_leases',
    alert: 'OnceonlyStaleInProgress',
    end: 'by itself when a process with a ledger on this store runs; or `release`',
  },
  lostBroker: {
    system: 'events',
    what: 'The broker cannot be reached',
    at: 'apart',
    command: 'events',
    shows: '"pending":1',
    metric: 'onceonly_outbox_lag_seconds',
    alert: 'OnceonlyOutboxLag',
    end: 'by itself when the broker is back: what waits is published in its order',
  },
  brokenEvent: {
    system: 'imports',
    what: 'A consumer cannot read an event',
    at: 'server',
    command: 'unknowns',
    metric: 'onceonly_inbox_dead_letters{operation="saga.SearchImportJob"}',
    alert: 'OnceonlyDeadLetters',
    end: '`inbox redrive` after the fix, or `inbox purge`',
  },
  missingFile: {
    system: 'imports',
    what: 'A file of an import never comes: its saga ends in Error',
    at: 'server',
    command: 'saga instances SearchImportJob --state Error',
    metric: 'onceonly_saga_events_total{operation="SearchImportJob",outcome="handled"}',
    alert: null,
    end: 'it has ended: start another import',
  },
  lostStep: {
    system: 'runs',
    what: 'The answer to a step of a run is lost',
    at: 'server',
    command: 'unknowns',
    metric: 'onceonly_runs_unknown',
    alert: 'OnceonlyUnknownOutcomesWaiting',
    end: '`run resolve RUN_ID KEY --to …`',
  },
  failedRun: {
    system: 'runs',
    what: 'A run fails',
    at: 'server',
    command: 'runs --state failed',
    metric: 'onceonly_runs_left_total{operation="outreach",outcome="failed"}',
    alert: null,
    end: '`run resume`, or `runs resume --state failed` for many',
  },
  stuckRun: {
    system: 'runs',
    what: 'No worker knows the definition of a run',
    at: 'server',
    command: 'runs --stuck',
    metric: 'onceonly_runs_stuck',
    alert: 'OnceonlyRunsStuck',
    end: 'start such a worker, or `run cancel`',
  },
  lateSchedule: {
    system: 'runs',
    what: 'No process has the schedule whose tick is due',
    at: 'server',
    command: 'schedules',
    metric: 'onceonly_run_schedule_late_seconds{operation="nightly"}',
    above: 300,
    alert: 'OnceonlyScheduleLate',
    end: 'start such a process, or `schedule pause`',
  },
  pausedQueue: {
    system: 'runs',
    what: 'A queue is paused, or no worker takes runs out of it',
    at: 'server',
    command: 'queue list',
    metric: 'onceonly_run_queue_oldest_waiting_seconds{operation="mails"}',
    alert: null,
    end: '`queue resume`, or start a worker that has the queue',
  },
  blockedQueue: {
    system: 'runs',
    what: 'A run with an unknown step keeps its place in a queue: the others of its key do not begin',
    at: 'server',
    command: 'queue list',
    metric: 'onceonly_run_queue_depth{operation="calls",outcome="blocked"}',
    alert: null,
    end: 'resolve the step: `onceonly unknowns` lists it',
  },
  cutRegion: {
    system: 'chat',
    what: 'A region is cut off from the others',
    at: 'server',
    command: 'rooms',
    metric: 'onceonly_stream_exchange_lag_seconds{operation="frankfurt from tokyo"}',
    above: 10,
    alert: 'OnceonlyRegionCutOff',
    end: 'by itself: the region catches up when it is joined again',
  },
  lostUpstream: {
    system: 'gateway',
    what: 'The service behind a gateway hangs up',
    at: 'gateway',
    command: 'unknowns',
    metric: 'onceonly_dedup_unknown_waiting',
    alert: 'OnceonlyUnknownOutcomesWaiting',
    end: '`resolve --id … --succeeded JSON --status 201`, `--failed` or `--rerun`',
  },
  reusedAtGateway: {
    system: 'gateway',
    what: 'A key comes to a gateway with another payload',
    at: 'gateway',
    command: 'conflicts',
    metric: 'onceonly_dedup_key_reuse_conflicts_total{operation="pay"}',
    alert: null,
    end: 'the caller mends how it makes keys',
  },
  slowUpstream: {
    system: 'gateway',
    what: 'Retries come faster than the service behind a gateway answers',
    at: 'gateway',
    command: 'busiest',
    shows: '"operation":"slow"',
    metric: 'onceonly_dedup_in_progress_total{operation="slow"}',
    alert: 'OnceonlyRepeatedInProgress',
    end: 'by itself: when the service has answered, a retry gets its response',
  },
  copiesAtGateway: {
    system: 'gateway',
    what: 'Copies without a key come while the original is under way',
    at: 'gateway',
    command: 'records --state in_progress',
    metric: 'onceonly_guard_pending_by_one_workspace',
    alert: 'OnceonlyDuplicatePendingFlood',
    end: 'by itself: when the service has answered, a copy gets its response',
  },
  lostStore: {
    system: 'store',
    what: 'The store cannot be reached',
    at: 'server',
    command: 'doctor',
    metric: 'onceonly_store_up',
    alert: 'OnceonlyStoreUnreachable',
    end: 'by itself when the store is back; nothing runs meanwhile',
  },
} as const satisfies Readonly<Record<string, Trouble>>

export type TroubleName = keyof typeof troubles

/** The table of the documentation: one line for each. */
export function tableOf(list: readonly Trouble[]): string {
  const cells = list.map(({ system, what, command, metric, alert, end }) => [
    system,
    what,
    `\`onceonly ${command}\``,
    metric === null ? 'none' : `\`${metric}\``,
    alert === null ? 'none' : `\`${alert}\``,
    end,
  ])
  const heads = ['system', 'what goes wrong', 'command, and console', 'metric', 'alert', 'how it ends']
  return [heads, heads.map(() => '---'), ...cells].map((row) => `| ${row.join(' | ')} |`).join('\n')
}
