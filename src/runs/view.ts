import { decodeValue } from '../ledger/core/codec.ts'
import type { Failure } from '../ledger/core/verdict.ts'
import { readChild, recordedChild } from './child-plan.ts'
import type {
  AttemptFailure,
  AttributeValue,
  Entry,
  EntryKind,
  EntryState,
  QueuePlace,
  RunRow,
  RunState,
} from './entry.ts'

export interface StepView {
  readonly id: string
  readonly key: string
  /** Empty for the run's own line; otherwise the fork that it belongs to. */
  readonly branch: string
  readonly tick: number
  readonly kind: EntryKind
  readonly state: EntryState
  readonly attempts: number
  readonly result: unknown
  readonly plan: unknown
  /** The run of a child. */
  readonly child: string | null
  readonly failures: readonly AttemptFailure[]
  readonly dueAt: number | null
  /** When its state was recorded. */
  readonly at: number
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
  /** When it fails unless it has ended; null while nothing limits it. */
  readonly deadlineAt: number | null
  /** Its place in a queue; null for a run that was started. */
  readonly queue: QueuePlace | null
  /** The run that waits for this one. */
  readonly parent: string | null
  /** When it was cancelled. Until it has cleaned up after itself, it has not ended. */
  readonly cancelledAt: number | null
  /** Where it was forked off another run; null for a run that was not. */
  readonly forkedFrom: { readonly runId: string; readonly key: string } | null
  /** The run that continues this one, under its definition: this one has ended for it. */
  readonly continuedAs: string | null
  /** What its body set, to be found by. */
  readonly attributes: Readonly<Record<string, AttributeValue>>
  readonly steps: readonly StepView[]
}

export function summaryOf(run: RunRow, attributes: RunView['attributes'] = {}): Omit<RunView, 'steps'> {
  const { id: runId, definition, version, state, failure, dueAt, startedAt, endedAt, restarts } = run
  const { deadlineAt, queue, parent, cancelledAt } = run
  const input = decodeValue(run.input)
  const result = run.result === null || run.continuedAs !== null ? undefined : decodeValue(run.result)
  return {
    runId,
    definition,
    version,
    state,
    input,
    result,
    failure,
    dueAt,
    startedAt,
    endedAt,
    restarts,
    deadlineAt,
    queue,
    parent,
    cancelledAt,
    forkedFrom: forkOf(run.forkedFrom),
    continuedAs: run.continuedAs,
    attributes,
  }
}

function forkOf(text: string | null): RunView['forkedFrom'] {
  if (text === null) return null
  const space = text.indexOf(' ')
  return { runId: text.slice(space + 1), key: text.slice(0, space) }
}

export function viewOf(run: RunRow, entries: readonly Entry[], attributes: RunView['attributes'] = {}): RunView {
  return {
    ...summaryOf(run, attributes),
    steps: entries.filter(({ kind }) => kind !== 'end').map((entry) => stepViewOf(run, entry)),
  }
}

function stepViewOf({ id: runId }: RunRow, entry: Entry): StepView {
  const { stepId: id, key, branch, tick, kind, state, attempts, failures, dueAt, result, plan, at } = entry
  const read = (text: string | null) => (text === null ? undefined : decodeValue(text))
  const child = kind === 'child' ? recordedChild(runId, entry) : null
  const value = kind === 'child' && result !== null ? readChild(result).value : read(result)
  return { id, key, branch, tick, kind, state, attempts, result: value, plan: read(plan), child, failures, dueAt, at }
}
