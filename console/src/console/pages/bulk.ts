import { Refused } from '../../parts/ask.ts'
import { listed } from '../../parts/list.tsx'
import { type AnswerOf, act, question } from '../api.ts'
import { runWords } from '../run-words.ts'

export type BulkHow = 'cancel' | 'resume' | 'retry'

type Run = AnswerOf<'runs'>['rows'][number]

/** One that was left as it is, and why. */
export interface Left {
  readonly runId: string
  readonly note: string
}

export interface Found {
  readonly runs: readonly Run[]
  /** There are more than these. */
  readonly more: boolean
}

/** As many as one dialog changes: each is an action of its own, and a line of the audit. */
const RUNS_MOST = 10_000
/** Runs of one request: its answer moves the bar. */
const BATCH = 50

export const bulkWords = {
  cancel: {
    title: 'Cancel the runs that match?',
    confirm: 'Cancel',
    about: runWords.cancel,
    states: ['queued', 'running', 'sleeping', 'unknown'],
  },
  resume: {
    title: 'Resume the runs that match?',
    confirm: 'Resume',
    about: runWords.resume,
    states: ['failed', 'cancelled', 'unknown'],
  },
  retry: {
    title: 'Retry the runs that match now?',
    confirm: 'Retry',
    about: 'Steps that wait for their next attempt are tried at once, under the same keys.',
    states: ['sleeping'],
  },
} as const

/**
 * The runs that the list shows by its filters, in the states that can be changed this way.
 *
 * @throws Refused when there is none
 */
export async function lookFor(
  how: BulkHow,
  { state = '', ...filter }: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<Found> {
  const { states } = bulkWords[how]
  const chosen = state === '' ? states : states.filter((each) => each === state)
  if (chosen.length === 0) throw new Refused(409, `Runs that are ${state} cannot be changed this way.`)
  const runs: Run[] = []
  let more = false
  for (const each of chosen) {
    const page = await listed<Run>(question('/runs', { ...filter, state: each }), RUNS_MOST - runs.length + 1, signal)
    runs.push(...page)
    more ||= runs.length > RUNS_MOST
    if (more) break
  }
  if (runs.length === 0) throw new Refused(404, `No run that matches is ${states.join(' or ')}.`)
  return { runs: runs.slice(0, RUNS_MOST), more }
}

/** Changes exactly these, a batch at a time; stops between two of them when the reader leaves. */
export async function changeAll(
  how: BulkHow,
  runs: readonly Run[],
  signal: AbortSignal,
  progress: (done: number) => void,
): Promise<readonly Left[]> {
  const left: Left[] = []
  for (let first = 0; first < runs.length && !signal.aborted; first += BATCH) {
    const runIds = runs.slice(first, first + BATCH).map(({ runId }) => runId)
    const { rows } = await act<AnswerOf<'runs.cancel'>>({ action: `runs.${how}`, runIds })
    for (const { runId, result, note, state } of rows) {
      if (result !== 'changed') left.push({ runId, note: note ?? `it is ${state}` })
    }
    progress(Math.min(first + BATCH, runs.length))
  }
  return left
}
