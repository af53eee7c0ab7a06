import type { Breaks, World } from './parts.ts'
import { everyPart } from './program.ts'

interface Rows {
  readonly runs: readonly RunState[]
  readonly steps: readonly StepRow[]
}

interface RunState {
  readonly id: string
  readonly state: string
  readonly failure: string | null
  readonly takeovers: number
}

interface StepRow {
  readonly run: string
  readonly key: string
  readonly step: string
  readonly state: string
  readonly kind: string
}

/** What is recorded, seen from outside. */
export function stateOf({ look }: World['database']): Rows {
  return {
    runs: look('select id, state, failure, takeovers from onceonly_runs order by id') as Rows['runs'],
    steps: look(
      'select run_id as run, key, step_id as step, state, kind from onceonly_run_steps order by run_id, position',
    ) as Rows['steps'],
  }
}

/** The last name of a path: programs give every part a name of its own. */
export function partOf({ run, step }: StepRow): string {
  return `${run} ${step.split('/').at(-1)}`
}

/** What must be so at the end of every simulation, whatever happened in it. */
export function judge({ database, outside, programs, breaks }: World): void {
  const { runs, steps } = stateOf(database)
  judgeFailures(runs, breaks)
  for (const [runId, parts] of programs) {
    for (const { id } of everyPart(parts)) {
      const count = outside.performed(`${runId} ${id}`)
      if (count > 1) breaks('performed_twice', `${runId} ${id}: ${count} times`)
    }
  }
  for (const step of steps.filter(({ kind, state }) => kind === 'channel' && state === 'succeeded')) {
    if (outside.performed(partOf(step)) === 0) breaks('not_performed', partOf(step))
  }
}

/** Unchanged code takes the way that it took: also a run that was resumed since then must not have left it. */
export function judgeFailures(runs: Rows['runs'], breaks: Breaks): void {
  for (const { id, failure } of runs)
    if (failure?.includes('run_diverged') === true) breaks('diverged', `${id}: ${failure}`)
}

/** Unchanged code, replayed, comes to the same. */
export async function judgeReplays(world: World): Promise<void> {
  const { simulation, programs, join, breaks } = world
  const looking = (async () => {
    const { engine } = await join(simulation.process(), false)
    for (const runId of programs.keys()) {
      const { verdict, steps, result } = await engine.replay(runId)
      const changed = steps.filter(({ status }) => status !== 'same')
      if (verdict !== 'identical') breaks('replay_differs', `${runId}: ${JSON.stringify({ changed, result })}`)
    }
  })()
  await simulation.run({ untilMs: Number.POSITIVE_INFINITY, events: 1_000 })
  await looking
}
