import type { Replay, RunView } from 'onceonly/run'
import { isoOf } from '../messages/message.ts'
import { loadedOf, type OutreachInput } from './run.ts'

/** The run inside is named by its workspace, too; clients do not see that. */
export type Summary = Omit<RunView, 'steps'>

export function leadIdOf(input: OutreachInput): string | null {
  return 'campaignId' in input ? input.leadId : input.lead.id
}

/** What clients see of a run, without its steps. */
export function summaryOf({ state, input, failure, dueAt, startedAt, endedAt }: Summary, runId: string) {
  const of = input as OutreachInput
  const { sequenceId, version } = of
  return {
    runId,
    state,
    sequenceId,
    version,
    leadId: leadIdOf(of),
    campaignId: 'campaignId' in of ? of.campaignId : null,
    error: failure?.message ?? null,
    dueAt: dueAt === null ? null : isoOf(dueAt),
    startedAt: isoOf(startedAt),
    endedAt: endedAt === null ? null : isoOf(endedAt),
  }
}

/** What clients see of a run. */
export function runOf(view: RunView, runId: string) {
  const types = new Map(loadedOf(view)?.steps.map(({ id, type }) => [id, type]))
  const steps = view.steps.flatMap((step, at) => {
    const { id, key, tick, attempts, failures, dueAt } = step
    // The journal notes that a wait began; any entry after it shows that it is over.
    const over = at < view.steps.length - 1 || view.state === 'succeeded'
    const state = step.kind === 'sleep' && over ? ('succeeded' as const) : step.state
    const due = dueAt === null || state === 'succeeded' ? null : isoOf(dueAt)
    const error = state === 'succeeded' ? null : (failures.at(-1)?.message ?? null)
    const type = types.get(id)
    // What a run of a campaign reads before its steps is none of them.
    if (type === undefined) return []
    return { id, type, key, tick, attempts, state, result: step.result ?? null, error, dueAt: due }
  })
  return { ...summaryOf(view, runId), steps }
}

/** What clients see of a replay. */
export function replayOf({ verdict, performed, blocked, steps, result }: Replay, runId: string) {
  return {
    runId,
    verdict,
    performed,
    blocked: blocked.length,
    steps: steps.map(({ id, key, tick, status, originalResult, replayedResult, identical, diff }) => {
      const [original, replayed] = [originalResult ?? null, replayedResult ?? null]
      return { id, key, tick, status, originalResult: original, replayedResult: replayed, identical, diff }
    }),
    result: { identical: result.identical, diff: result.diff },
  }
}
