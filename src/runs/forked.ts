import { decodeValue } from '../ledger/core/codec.ts'
import { OnceError } from '../ledger/core/errors.ts'
import { checkOptions } from '../ledger/core/option-names.ts'
import type { Script, SqlSeam } from '../ledger/store/sql.ts'
import { setAttributes } from './attributes.ts'
import { isOnePath, isWithin } from './branch.ts'
import { isCleanUp } from './clean-up-path.ts'
import type { Attributes, Entry, RunRow } from './entry.ts'
import { COPIED, isOpen } from './entry.ts'
import { RunError } from './errors.ts'
import { readWon } from './fork.ts'
import { stepKey } from './key.ts'
import { checkId } from './names.ts'
import { newRun } from './new-run.ts'
import { entryColumns, entryRecord, runColumns, runOf } from './stored.ts'
import { startStatement } from './writes.ts'

export interface ForkOptions {
  /** The id of the new run. The same fork again is the same run. */
  readonly runId: string
  /** The first step that the new run does itself, by its id or its key; what came before it is copied. */
  readonly from: string
  /** Which execution of this step, where it has several; counts from 0. @default 0 */
  readonly tick?: number
  /** What the body of the new run gets. @default the input of the old run */
  readonly input?: unknown
}

/** Entries of one statement. */
const ENTRIES = 500

/** The step that a fork begins at. */
function stepOf(run: RunRow, entries: readonly Entry[], { from, tick = 0 }: ForkOptions): Entry {
  const step = entries.find(({ key, stepId, tick: its }) => key === from || (stepId === from && its === tick))
  if (step !== undefined && !isCleanUp(step.branch)) return step
  const text = `The run ${run.id} has not come to ${from}${tick === 0 ? '' : `, tick ${tick}`}.`
  throw new OnceError('not_found', text, { next: 'Give the `id` or the `key` of one of the steps of its `view`.' })
}

/** The run that begins with a part of another one. False when it is there already. */
export function* forkOne(sql: SqlSeam, old: RunRow, entries: readonly Entry[], options: ForkOptions): Script<boolean> {
  checkOptions('`fork`', options, { runId: true, from: true, tick: true, input: true })
  const { runId } = options
  checkId('run', runId)
  const step = stepOf(old, entries, options)
  const input = options.input === undefined ? decodeValue(old.input) : options.input
  const definition = { name: old.definition, version: old.version, timeoutMs: old.timeoutMs }
  const fresh = newRun(
    definition,
    { runId, input },
    { worker: null, now: old.startedAt, forkedFrom: `${step.key} ${old.id}` },
  )
  if ((yield startStatement(sql, fresh)).length === 0) {
    const [row] = yield { text: `select ${runColumns} from onceonly_runs where id = ?`, values: [runId] }
    const there = row === undefined ? null : runOf(row)
    if (there?.forkedFrom === fresh.forkedFrom && there.inputFingerprint === fresh.inputFingerprint) return false
    throw new RunError('run_conflict', `There is another run ${runId} already.`, { details: { runId } })
  }
  const copied = copyOf(runId, entries, step)
  for (let first = 0; first < copied.length; first += ENTRIES) {
    const records = copied.slice(first, first + ENTRIES).map((entry) => ({ run_id: runId, ...entryRecord(sql, entry) }))
    yield { text: copyText(sql), values: [JSON.stringify(records)] }
  }
  for (const { plan } of copied.filter(({ kind }) => kind === 'attributes')) {
    yield* setAttributes(sql, runId, decodeValue(plan ?? '{}') as Attributes)
  }
  if (copied.some(({ kind }) => kind === 'clean-up')) {
    yield { text: 'update onceonly_runs set cleans = 1 where id = ?', values: [runId] }
  }
  return true
}

function copyText({ dialect }: SqlSeam): string {
  const names = ['run_id', ...Object.keys(entryColumns)].join(', ')
  return `insert into onceonly_run_steps (${names}) select ${names} from ${dialect.recordsOf({ run_id: 'text', ...entryColumns })} where true`
}

/**
 * What was final before the step: under the keys of the new run, and without what was still open, or was decided by what
 * came later. Branches that ran beside it come as far as they were when it first appeared.
 */
function copyOf(runId: string, entries: readonly Entry[], step: Entry): Entry[] {
  const before = entries.filter(({ position, branch }) => position < step.position && !isCleanUp(branch))
  const later = entries.filter(({ position, branch }) => position >= step.position && !isCleanUp(branch))
  const open = new Set(before.filter((entry) => entry.kind === 'race' && isDecidedLater(entry, step, later)))
  const decided = before.filter((entry) => entry.kind === 'race' && entry.result !== null && !open.has(entry))
  return before.flatMap((entry) => {
    const kept = open.has(entry) ? reopened(entry) : keptOf(entry, before, decided)
    if (kept === null) return []
    return [{ ...kept, key: stepKey(runId, entry.stepId, entry.tick), leadsTo: null, fingerprint: COPIED }]
  })
}

function keptOf(entry: Entry, before: readonly Entry[], decided: readonly Entry[]): Entry | null {
  const { kind, state, branch, position } = entry
  if (state !== 'abandoned') return kind === 'sleep' || kind === 'race' || !isOpen(state) ? entry : null
  if (decided.some((race) => isBehind(race, entry))) return entry
  // Its branch lost only later. A sleep had passed where anything stands behind it.
  const isPassed = before.some((other) => other.position > position && isOnePath(other.branch, branch))
  return kind === 'race' || isPassed ? reopened(entry) : null
}

/** A race stands before its branches only because it keeps values, and those stay. */
function reopened(entry: Entry): Entry {
  return { ...entry, state: 'waiting', result: null, failures: [] }
}

/** Whether the step, or another one that is not copied, belongs to this turn of the race. */
function isDecidedLater(race: Entry, step: Entry, later: readonly Entry[]): boolean {
  const isOfIt = (entry: Entry) =>
    isWithin(entry.branch, race.stepId) && (race.result === null ? race.at >= entry.at : isBehind(race, entry))
  return isOfIt(step) || (!isOpen(race.state) && later.some(isOfIt))
}

/** Whether a step of a branch was behind the race when it was decided. */
function isBehind(race: Entry, { branch, stepId, tick }: Entry): boolean {
  return isWithin(branch, race.stepId) && tick < (readWon(race.result ?? '').ticks[stepId] ?? 0)
}
