import type { RunView, StepView } from 'onceonly/run'

/** One step on the time axis. */
export interface Bar {
  readonly step: StepView
  readonly from: number
  /** Where it ended; the present while it has not. */
  readonly to: number
  readonly kind: 'work' | 'wait'
  /** When attempts failed. */
  readonly failedAt: readonly number[]
}

const openStates: readonly StepView['state'][] = ['intent', 'retrying', 'waiting', 'unknown']

/**
 * The journal has when a step was recorded last. It began with its first attempt where that failed, and otherwise when the
 * step before it in its branch was over.
 */
export function barsOf({ startedAt, endedAt, steps }: Pick<RunView, 'startedAt' | 'endedAt' | 'steps'>, now: number) {
  const over = new Map<string, number>()
  const end = endedAt ?? now
  return steps.map((step): Bar => {
    const before = over.get(step.branch) ?? over.get('') ?? startedAt
    const isWait = step.kind === 'sleep' || step.kind === 'signal'
    const failedAt = step.failures.map(({ at }) => at)
    const from = Math.max(startedAt, Math.min(before, step.at, ...failedAt))
    const to = Math.max(from, endOf(step, isWait, end))
    over.set(step.branch, to)
    return { step, from, to, kind: isWait ? 'wait' : 'work', failedAt: failedAt.filter((at) => at >= from) }
  })
}

function endOf({ state, at, dueAt }: StepView, isWait: boolean, end: number): number {
  // A sleep is recorded when it begins, and is over when it was due.
  if (isWait && dueAt !== null) return Math.min(dueAt, end)
  return openStates.includes(state) ? end : at
}
