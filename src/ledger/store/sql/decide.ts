import type { RecordId } from '../../core/identity.ts'
import type { LedgerRecord, Unknown } from '../../core/record.ts'
import { wakesWaiters } from '../../core/record.ts'
import type { Request } from '../../core/request.ts'
import { transition } from '../../core/transition.ts'
import type { AppliedDecision } from '../port.ts'
import type { RecordRow } from '../row.ts'
import { toRow } from '../row.ts'

/** Answers in the order of the requests; null where this step decided nothing. */
export type Answers = (AppliedDecision | null)[]

export interface Snapshot {
  readonly now: number
  /** In the order of the ids; expired records as they are stored. */
  readonly records: readonly (LedgerRecord | null)[]
}

export type ReadRecords<On> = (on: On, ids: readonly RecordId[]) => Promise<Snapshot>

/**
 * Replays, conflicts, "in progress", stale holders: most of what meets an existing record leaves it alone. Such an
 * answer needs no lock, because it is true at the moment of the read.
 */
export async function answerUnchanged<On>(
  read: ReadRecords<On>,
  on: On,
  requests: readonly Request[],
): Promise<Answers> {
  if (requests.length === 0) return []
  const { now, records } = await read(
    on,
    requests.map((request) => request.id),
  )
  return requests.map((request, index) => {
    const stored = records[index] ?? null
    // No fence is taken here: an answer that would use one changes the record, and is decided under a lock.
    const { record, decision } = transition(stored, request, { now, fence: stored?.fence ?? 0 })
    return record === stored ? { record, decision, now } : null
  })
}

/**
 * `again`: a row appeared during the decision. `locked`: another transaction holds the row, and the caller does not
 * wait.
 */
export type Decided = AppliedDecision | 'again' | 'locked'

export interface Round {
  readonly decided: readonly Decided[]
  readonly woken: readonly string[]
}

/**
 * The slow path, for whatever the single statements leave over. It runs inside an open transaction: lock the rows in
 * the order of their ids, read the clock, let `transition` itself decide, write back what it says.
 *
 * A row that is not there cannot be locked. If a twin inserts it meanwhile, ours is not inserted, and that request has
 * to go another round.
 */
export type DecideRound<On> = (on: On, requests: readonly Request[], skipLocked: boolean) => Promise<Round>

/** One record under its lock, with a time and a fence that were read after the lock was taken. */
export type LockedRecord =
  | { readonly kind: 'held'; readonly record: LedgerRecord | null; readonly now: number; readonly nextFence: number }
  /** Another transaction holds it. */
  | { readonly kind: 'locked' }

/** The statements of the slow path, on one database. */
export interface DecideStatements<On> {
  /** In the order of the ids. */
  lock(on: On, ids: readonly RecordId[], skipLocked: boolean): Promise<readonly LockedRecord[]>
  /** Answers the ids of those that are in the table now. */
  insert(on: On, rows: readonly RecordRow[]): Promise<ReadonlySet<RecordId>>
  /** A new incarnation is a new record to those who count. */
  update(on: On, rows: readonly RecordRow[]): Promise<void>
  leaveUnknowns(on: On, records: readonly Unknown[]): Promise<void>
  enterUnknowns(on: On, records: readonly Unknown[]): Promise<void>
}

interface Change {
  readonly index: number
  readonly before: LedgerRecord | null
  readonly after: LedgerRecord
}

export function createDecideRound<On>(statements: DecideStatements<On>): DecideRound<On> {
  /** Answers the places of those that are in the table now. */
  async function write(on: On, changes: readonly Change[]): Promise<Set<number>> {
    const fresh = changes.filter(({ before }) => before === null)
    const held = changes.filter(({ before }) => before !== null)
    const written = new Set(held.map(({ index }) => index))
    if (fresh.length > 0) {
      const ids = await statements.insert(on, fresh.map(rowOf))
      for (const { index, after } of fresh) if (ids.has(after.id)) written.add(index)
    }
    if (held.length > 0) await statements.update(on, held.map(rowOf))
    return written
  }

  /** Keeps the list of unknowns in step, and answers whose waiters are to be woken when the transaction has committed. */
  async function tell(on: On, changes: readonly Change[]): Promise<string[]> {
    const left = changes.flatMap(({ before, after }) => (isUnknown(before) && !isUnknown(after) ? [before] : []))
    const entered = changes.flatMap(({ before, after }) => (isUnknown(after) && !isUnknown(before) ? [after] : []))
    if (left.length > 0) await statements.leaveUnknowns(on, left)
    if (entered.length > 0) await statements.enterUnknowns(on, entered)
    return changes.flatMap(({ before, after }) => (wakesWaiters(before, after) ? [after.id] : []))
  }

  return async (on, requests, skipLocked) => {
    const decided: Decided[] = []
    const changes: Change[] = []
    const rows = await statements.lock(
      on,
      requests.map((request) => request.id),
      skipLocked,
    )
    for (const [index, request] of requests.entries()) {
      const row = rows[index]
      if (row === undefined || row.kind === 'locked') {
        decided.push('locked')
        continue
      }
      const { record: before, now } = row
      // A record that outlived a reset may carry a larger fence than the sequence; it must still grow.
      const fence = Math.max(row.nextFence, (before?.fence ?? 0) + 1)
      const { record, decision } = transition(before, request, { now, fence })
      if (record !== null && record !== before) changes.push({ index, before, after: record })
      decided.push({ record, decision, now })
    }
    const written = await write(on, changes)
    for (const { index } of changes) if (!written.has(index)) decided[index] = 'again'
    const kept = changes.filter(({ index }) => written.has(index))
    return { decided, woken: await tell(on, kept) }
  }
}

function isUnknown(record: LedgerRecord | null): record is Unknown {
  return record?.state === 'unknown'
}

function rowOf({ after }: Change): RecordRow {
  const row = toRow(after)
  return { ...row, due_at: row.due_at === null ? null : wholeMs(row.due_at) }
}

/** Times and spans are whole milliseconds in the table; a caller's fraction must not spoil the row. */
export function wholeMs(ms: number): number {
  return Math.ceil(ms)
}
