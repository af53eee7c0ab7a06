import type { RecordColumns } from '../ledger/store/dialect.ts'
import { numberOrNull, type SqlRow, type SqlSeam } from '../ledger/store/sql.ts'
import type { Entry, EntryKind, EntryState, QueuePlace, RunRow, RunState, SignalRow } from './entry.ts'

/** How runs and journals stand in their tables, and how they are read back. */

export const runColumns =
  'id, definition, version, state, input, input_fingerprint, result, failure, worker, fence, due_at, taken_at, taken_before, started_at, ended_at, restarts, takeovers, timeout_ms, deadline_at, queue, queue_key, dedup_key, priority, ready_at, admitted_at, parent, if_parent_ends, cancelled_at, cleans, forked_from, continues, continued_as'

/** What `cleans` holds of a run that cleans up because its time was over; before that, 1 for one that declared clean-ups. */
export const TIMED_OUT = 2

export function runOf(row: SqlRow): RunRow {
  const text = (name: string) => row[name] as string
  return {
    id: text('id'),
    definition: text('definition'),
    version: Number(row['version']),
    state: text('state') as RunState,
    input: text('input'),
    inputFingerprint: text('input_fingerprint'),
    result: row['result'] as string | null,
    failure: readFailure(row['failure'] as string | null),
    worker: row['worker'] as string | null,
    fence: Number(row['fence']),
    dueAt: numberOrNull(row['due_at']),
    takenAt: numberOrNull(row['taken_at']),
    takenBefore: numberOrNull(row['taken_before']),
    startedAt: Number(row['started_at']),
    endedAt: numberOrNull(row['ended_at']),
    restarts: row['restarts'] as string | null,
    takeovers: Number(row['takeovers']),
    timeoutMs: numberOrNull(row['timeout_ms']),
    deadlineAt: numberOrNull(row['deadline_at']),
    queue: queuePlaceOf(row),
    parent: row['parent'] as string | null,
    ifParentEnds: row['if_parent_ends'] as RunRow['ifParentEnds'],
    cancelledAt: numberOrNull(row['cancelled_at']),
    timedOut: Number(row['cleans']) === TIMED_OUT,
    forkedFrom: row['forked_from'] as string | null,
    continues: row['continues'] as string | null,
    continuedAs: row['continued_as'] as string | null,
  }
}

function queuePlaceOf(row: SqlRow): QueuePlace | null {
  if (row['queue'] === null) return null
  return {
    name: row['queue'] as string,
    key: row['queue_key'] as string,
    dedupKey: row['dedup_key'] as string | null,
    priority: Number(row['priority']),
    readyAt: Number(row['ready_at']),
    admittedAt: numberOrNull(row['admitted_at']),
  }
}

export function readFailure(text: string | null): RunRow['failure'] {
  return text === null ? null : (JSON.parse(text) as RunRow['failure'])
}

export const entryColumns = {
  key: 'text',
  position: 'bigint',
  branch: 'text',
  step_id: 'text',
  tick: 'bigint',
  kind: 'text',
  state: 'text',
  attempts: 'bigint',
  due_at: 'bigint',
  fingerprint: 'text',
  plan: 'text',
  result: 'text',
  failures: 'text',
  recorded: 'text',
  at: 'bigint',
  leads_to: 'text',
} as const satisfies RecordColumns

/** What says something about its content. */
export const encryptedEntryColumns = ['fingerprint', 'plan', 'result', 'failures', 'recorded'] as const

/** What a later write of the same step may change; its place in the run stays. */
export const entryChanges = [
  'state',
  'attempts',
  'due_at',
  'fingerprint',
  'plan',
  'result',
  'failures',
  'at',
  'leads_to',
] as const

export function entryRecord(
  { secret }: Pick<SqlSeam, 'secret'>,
  entry: Entry,
): Readonly<Record<keyof typeof entryColumns, string | number | null>> {
  return {
    key: entry.key,
    position: entry.position,
    branch: entry.branch,
    step_id: entry.stepId,
    tick: entry.tick,
    kind: entry.kind,
    state: entry.state,
    attempts: entry.attempts,
    due_at: entry.dueAt,
    fingerprint: secret(entry.fingerprint),
    plan: secret(entry.plan),
    result: secret(entry.result),
    failures: secret(JSON.stringify(entry.failures)),
    recorded: secret(JSON.stringify(entry.values)),
    at: entry.at,
    leads_to: entry.leadsTo,
  }
}

export function entryOf(row: SqlRow): Entry {
  return {
    key: row['key'] as string,
    position: Number(row['position']),
    branch: row['branch'] as string,
    stepId: row['step_id'] as string,
    tick: Number(row['tick']),
    kind: row['kind'] as EntryKind,
    state: row['state'] as EntryState,
    attempts: Number(row['attempts']),
    dueAt: numberOrNull(row['due_at']),
    fingerprint: row['fingerprint'] as string | null,
    plan: row['plan'] as string | null,
    result: row['result'] as string | null,
    failures: JSON.parse(row['failures'] as string) as Entry['failures'],
    values: JSON.parse(row['recorded'] as string) as Entry['values'],
    at: Number(row['at']),
    leadsTo: row['leads_to'] as string | null,
  }
}

export function signalOf(row: SqlRow): SignalRow {
  return {
    id: row['id'] as string,
    name: row['name'] as string,
    number: Number(row['number']),
    payload: row['payload'] as string,
  }
}
