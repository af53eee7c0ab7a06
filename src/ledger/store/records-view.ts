import { stateCode } from './row.ts'

/** What the dialects of a readable view differ in. */
export interface ViewDialect {
  /** A time of the store as a timestamp; null where it is "never". */
  time(column: string): string
  /** The text of one member of a column that holds JSON; the path is of plain names. */
  member(column: string, ...path: readonly string[]): string
  /** The id of a record, as everything else shows it. */
  readonly id: string
}

/** The first millisecond that has no ordinary date: what lasts longer lasts forever. */
export const YEAR_10000_MS = 253_402_300_800_000

const words: Readonly<Record<keyof typeof stateCode, string>> = {
  reserved: 'reserved',
  running: 'running',
  succeeded: 'succeeded',
  failed_terminal: 'failed',
  failed_retryable: 'failed, retryable',
  lapsed: 'lapsed, retryable',
  unknown: 'unknown',
  released: 'released',
  forgotten: 'forgotten',
}

/** The records for people with SQL: states in words, times as timestamps, what was noted in columns. */
export function recordsView(records: string, { time, member, id }: ViewDialect): string {
  const status = Object.entries(stateCode).map(([name, code]) => {
    return `WHEN ${code} THEN '${words[name as keyof typeof stateCode]}'`
  })
  const inStates = (...names: (keyof typeof stateCode)[]) =>
    `state IN (${names.map((name) => stateCode[name]).join(', ')})`
  const when = (condition: string, value: string) => `CASE WHEN ${condition} THEN ${value} END`
  const failed = inStates('failed_terminal', 'failed_retryable', 'lapsed')
  return `SELECT
    ${id} AS record, tenant, caller, operation, r.key, batch,
    CASE state ${status.join(' ')} END AS status,
    attempts, attempts + CAST(coalesce(${member('detail', 'facts', 'extraCalls')}, '0') AS integer) AS calls,
    ${member('detail', 'facts', 'provider')} AS provider, ${member('detail', 'facts', 'reference')} AS reference,
    replays, conflicts, in_progress, ${time('repeated_at')} AS last_repeat_at,
    ${time('claimed_at')} AS claimed_at,
    ${when(inStates('reserved', 'running'), time('due_at'))} AS locked_until,
    ${when(inStates('failed_retryable', 'lapsed'), time('due_at'))} AS retry_at,
    ${when(inStates('unknown'), time('settled_at'))} AS unknown_since,
    ${when(`NOT ${inStates('unknown')}`, time('settled_at'))} AS settled_at,
    ${time('expires_at')} AS expires_at,
    ${member('pointer', 'type')} AS resource_type, ${member('pointer', 'id')} AS resource,
    ${member('detail', 'facts', 'taken')} AS taken, ${member('detail', 'facts', 'guard', 'hash')} AS guard_hash,
    CASE WHEN ${failed} THEN outcome WHEN ${inStates('unknown')} THEN ${member('detail', 'reason')} END AS failure,
    fingerprint
  FROM ${records} AS r`
}
