import type { RunView, StepView } from 'onceonly/run'

/** What actions on runs do, in words that an operator decides by: of one run, of many, and of campaigns. */
export const runWords = {
  cancel:
    'No further step begins, and a step that runs cannot record its result. Declared clean-up is done; everything else ' +
    'that was done stays done. Children are cancelled, too, except those that are to continue alone.',
  resume:
    'Continues from the journal: steps that failed get new attempts under the same keys, and nothing that was done is ' +
    'repeated. Fix the cause first.',
} as const

/** What a body declared for its cancel. */
export function isCleanUp({ branch }: Pick<StepView, 'branch'>): boolean {
  return branch.startsWith('$cancel')
}

type Shown = Pick<RunView, 'state' | 'endedAt' | 'steps'>

/** Taken away from workers that crashed with it: no step of it waits for a decision. */
function isParked({ state, endedAt, steps }: Shown): boolean {
  return state === 'unknown' && endedAt === null && !steps.some((step) => step.state === 'unknown')
}

/** Whether `resume` may make it continue; the server has the last word. */
export function isResumable(run: Shown): boolean {
  if (run.state === 'cancelled') return run.endedAt !== null && !run.steps.some(isCleanUp)
  return run.state === 'failed' || isParked(run)
}

/** What the new run of a fork would copy of the old one, and what it would do itself. */
export function forkOf(steps: readonly StepView[], from: StepView) {
  const place = steps.indexOf(from)
  const own = steps.filter((step) => !isCleanUp(step))
  const isFinal = ({ kind, state }: StepView) =>
    state === 'succeeded' || state === 'failed' || kind === 'sleep' || kind === 'race'
  const copied = own.filter((step) => steps.indexOf(step) < place && isFinal(step))
  const again = own.filter((step) => step.state !== 'abandoned' && !copied.includes(step))
  return { copied, again }
}
