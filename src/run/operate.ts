import { decodeValue, encodeValue } from '../core/codec.ts'
import { OnceError } from '../core/errors.ts'
import { limits } from '../core/limits.ts'
import type { Failure } from '../core/verdict.ts'
import type { SqlSeam, SqlValue } from '../store/sql.ts'
import { checkId, checkName } from './definition.ts'
import type { AttemptFailure, Entry, EntryKind, EntryState, RunRow, RunState } from './entry.ts'
import { allDefinite, remembered, withFailure } from './failures.ts'
import { storableFailure } from './problems.ts'
import { entryColumns, entryOf, runColumns, runOf } from './stored.ts'
import { RUN_TOPIC, scopeSql } from './tables.ts'

export interface StepView {
  readonly id: string
  readonly key: string
  readonly tick: number
  readonly kind: EntryKind
  readonly state: EntryState
  readonly attempts: number
  readonly result: unknown
  readonly plan: unknown
  readonly failures: readonly AttemptFailure[]
  readonly dueAt: number | null
}

export interface RunView {
  readonly runId: string
  readonly definition: string
  readonly version: number
  readonly state: RunState
  readonly input: unknown
  readonly result: unknown
  readonly failure: Failure | null
  readonly dueAt: number | null
  readonly startedAt: number
  readonly endedAt: number | null
  readonly restarts: string | null
  readonly steps: readonly StepView[]
}

export interface RunQuery {
  readonly state?: RunState
  readonly definition?: string
  /** Only runs whose ids have this before their first slash: how a service that puts the tenant there tells them apart. */
  readonly scope?: string
  readonly limit?: number
  /** Give back what the page before gave. */
  readonly cursor?: string | null
}

export interface RunPage {
  readonly runs: readonly Omit<RunView, 'steps'>[]
  readonly cursor: string | null
}

/** How a person, or a probe, settles a step of which nobody knows whether it happened. */
export type Resolution =
  | { readonly kind: 'succeeded'; readonly result: unknown }
  | { readonly kind: 'failed'; readonly error: unknown }
  /** It did not happen: it is tried again, under the same key. */
  | { readonly kind: 'not_done' }

/** What people and other systems ask of runs. */
export interface RunOperator {
  get(runId: string): Promise<RunView>
  list(query: RunQuery): Promise<RunPage>
  /** Delivered once, however often it is sent under its id. False when it was there already. */
  signal(runId: string, name: string, payload: unknown, options?: { readonly id?: string }): Promise<boolean>
  /** Ends a run; whatever is under way records nothing any more. False when it had ended before. */
  cancel(runId: string): Promise<boolean>
  /** After a fix: a failed run goes on at its failed steps, with new attempts under the same keys. */
  resume(runId: string): Promise<void>
  resolve(runId: string, key: string, resolution: Resolution): Promise<void>
}

export interface RunOperatorParts extends RunOperator {
  row(runId: string): Promise<RunRow>
  /** Makes a run due now. */
  wake(runId: string): Promise<void>
}

/** What the operator tells the worker of its own process. */
export interface Nearby {
  /** Something is due. */
  wake(): void
  /** A run was taken away. */
  drop(runId: string): void
}

export function createRunOperator(sql: SqlSeam, clock: () => Promise<number>, near: Nearby): RunOperatorParts {
  const { query, now } = sql
  const woken = `${sql.wake(RUN_TOPIC)} as woken`
  const stepNames = Object.keys(entryColumns).join(', ')

  async function row(runId: string): Promise<RunRow> {
    const [found] = await query(`select ${runColumns} from onceonly_runs where id = ?`, [runId])
    if (found === undefined) throw new OnceError('not_found', `There is no run ${runId}.`, { details: { runId } })
    return runOf(found)
  }

  /** Makes a run that waits due now. One that is held gets a mark, another one each time, which its worker will see. */
  async function makeDue(runId: string): Promise<void> {
    const mark = `case when worker is not null and due_at >= ${now} then due_at + 1 else ${now} end`
    await query(`update onceonly_runs set due_at = ${mark} where id = ? and ended_at is null returning ${woken}`, [
      runId,
    ])
    near.wake()
  }

  return {
    row,
    wake: makeDue,
    async get(runId) {
      const found = await row(runId)
      const entries = await query(`select ${stepNames} from onceonly_run_steps where run_id = ? order by position`, [
        runId,
      ])
      return viewOf(found, entries.map(entryOf))
    },
    async list({ limit = limits.pageRows, cursor = null, ...wanted }) {
      if (!Number.isSafeInteger(limit) || limit < 1) throw new OnceError('bad_option', 'A page has 1 run or more.')
      const { text, values } = filterOf(sql, wanted, cursor)
      const rows = await query(
        `select ${runColumns} from onceonly_runs ${text} order by started_at desc, id desc limit ?`,
        [...values, Math.min(limit, limits.pageRows)],
      )
      const runs = rows.map(runOf)
      const last = runs.at(-1)
      const full = runs.length === Math.min(limit, limits.pageRows)
      return {
        runs: runs.map((each) => summaryOf(each)),
        cursor: full && last !== undefined ? `${last.startedAt} ${last.id}` : null,
      }
    },
    async signal(runId, name, payload, { id = crypto.randomUUID() } = {}) {
      checkName('signal', name)
      checkId('signal', id)
      const encoded = encodeValue(payload)
      if ('problem' in encoded) throw new OnceError('bad_input', `The signal cannot be recorded: ${encoded.problem}.`)
      if (encoded.text.length > limits.runResultChars) {
        throw new OnceError('bad_input', `The signal is longer than ${limits.runResultChars} characters.`)
      }
      const target = await row(runId)
      if (target.endedAt !== null) throw new OnceError('not_found', `The run ${runId} has ended as ${target.state}.`)
      // One after the other on a run, because its number decides which wait gets it.
      const added = await query(
        `insert into onceonly_run_signals (run_id, id, name, number, payload)
          select ?, ?, ?, coalesce(max(number), 0) + 1, ? from onceonly_run_signals where run_id = ?
          on conflict (run_id, id) do nothing returning id`,
        [runId, id, name, encoded.text, runId],
      )
      await makeDue(runId)
      return added.length > 0
    },
    async cancel(runId) {
      await row(runId)
      const ended = await query(
        `update onceonly_runs set state = 'cancelled', ended_at = ${now}, due_at = null, worker = null, fence = fence + 1
          where id = ? and ended_at is null returning id`,
        [runId],
      )
      near.drop(runId)
      return ended.length > 0
    },
    async resume(runId) {
      const found = await row(runId)
      if (found.state !== 'failed') {
        throw new OnceError('not_resolvable', `Only a failed run can be resumed; ${runId} is ${found.state}.`)
      }
      await query(
        `update onceonly_run_steps set state = 'retrying', attempts = 0, due_at = ${now}
          where run_id = ? and state = 'failed' and not exists (${PASSED})
            and exists (select 1 from onceonly_runs where id = ? and state = 'failed')`,
        [runId, runId],
      )
      await query(
        `update onceonly_runs set state = 'running', failure = null, ended_at = null, due_at = ${now}, fence = fence + 1
          where id = ? and state = 'failed' returning ${woken}`,
        [runId],
      )
      near.wake()
    },
    async resolve(runId, key, resolution) {
      await row(runId)
      const [step] = await query(`select ${stepNames} from onceonly_run_steps where run_id = ? and key = ?`, [
        runId,
        key,
      ])
      const failures = step === undefined ? [] : entryOf(step).failures
      const change = changeOf(resolution, await clock(), failures)
      // A step that a living worker has in hand is not for a person; one left behind by a dead worker is.
      const changed = await query(
        `update onceonly_run_steps set state = ?, result = ?, due_at = ?, failures = ?, at = ${now}
          where run_id = ? and key = ? and state = 'unknown' returning key`,
        [change.state, change.result, change.dueAt, change.failures, runId, key],
      )
      if (changed.length === 0) {
        throw new OnceError('not_resolvable', `${runId} has no step ${key} whose outcome is unknown.`)
      }
      await makeDue(runId)
    },
  }
}

/**
 * A failure that the run has left behind: its body caught it and went on, in its own branch or above. Trying such a step
 * again would let the run come another way than it went.
 */
const PASSED = `select 1 from onceonly_run_steps later
  where later.run_id = onceonly_run_steps.run_id and later.position > onceonly_run_steps.position
    and (later.branch in (onceonly_run_steps.branch, '')
      or substr(onceonly_run_steps.branch, 1, length(later.branch) + 1) = later.branch || '/')`

function changeOf(resolution: Resolution, now: number, before: readonly AttemptFailure[]) {
  const blank = { result: null as string | null, dueAt: null as number | null, failures: JSON.stringify(before) }
  switch (resolution.kind) {
    case 'succeeded': {
      const encoded = encodeValue(resolution.result)
      if ('problem' in encoded) throw new OnceError('bad_input', `The result cannot be recorded: ${encoded.problem}.`)
      return { ...blank, state: 'succeeded', result: encoded.text }
    }
    case 'failed': {
      const told = { ...storableFailure(resolution.error), attempt: 0, at: now, definite: true }
      return { ...blank, state: 'failed', failures: JSON.stringify(remembered(withFailure(before, told))) }
    }
    case 'not_done':
      return { ...blank, state: 'retrying', dueAt: now, failures: JSON.stringify(allDefinite(before)) }
  }
}

/** Only what is asked for stands in the text, so that the index that fits is found. */
function filterOf(
  { dialect }: SqlSeam,
  { state, definition, scope }: Pick<RunQuery, 'state' | 'definition' | 'scope'>,
  cursor: string | null,
): { readonly text: string; readonly values: readonly SqlValue[] } {
  const parts: [text: string, ...SqlValue[]][] = []
  if (scope !== undefined) parts.push([`${scopeSql(dialect)} = ?`, scope])
  // One of our own words, and in the text, because an index for one state is found only so.
  if (state !== undefined) parts.push(state === 'unknown' ? ["state = 'unknown'"] : ['state = ?', state])
  if (definition !== undefined) parts.push(['definition = ?', definition])
  if (cursor !== null) parts.push(['(started_at, id) < (?, ?)', ...readCursor(cursor)])
  const text = parts.length === 0 ? '' : `where ${parts.map(([condition]) => condition).join(' and ')}`
  return { text, values: parts.flatMap(([, ...values]) => values) }
}

function readCursor(cursor: string): [number, string] {
  const space = cursor.indexOf(' ')
  const before = Number(cursor.slice(0, space))
  if (space < 1 || !Number.isSafeInteger(before)) throw new OnceError('bad_option', 'The cursor is not one of ours.')
  return [before, cursor.slice(space + 1)]
}

function summaryOf(run: RunRow): Omit<RunView, 'steps'> {
  const { id: runId, definition, version, state, failure, dueAt, startedAt, endedAt, restarts } = run
  const input = decodeValue(run.input)
  const result = run.result === null ? undefined : decodeValue(run.result)
  return { runId, definition, version, state, input, result, failure, dueAt, startedAt, endedAt, restarts }
}

function viewOf(run: RunRow, entries: readonly Entry[]): RunView {
  return { ...summaryOf(run), steps: entries.map(stepViewOf) }
}

function stepViewOf({ stepId: id, key, tick, kind, state, attempts, failures, dueAt, result, plan }: Entry): StepView {
  const read = (text: string | null) => (text === null ? undefined : decodeValue(text))
  return { id, key, tick, kind, state, attempts, result: read(result), plan: read(plan), failures, dueAt }
}
