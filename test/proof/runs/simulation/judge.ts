import type { SimulatedDatabase } from './database.ts'
import type { Breaks, World } from './parts.ts'
import { everyPart } from './program.ts'

interface Rows {
  readonly runs: readonly RunState[]
  readonly steps: readonly StepRow[]
}

export interface RunState {
  readonly id: string
  readonly state: string
  readonly failure: string | null
  readonly takeovers: number
  readonly cancelled: number | null
  readonly continues: string | null
  /** What becomes of it when its parent ends. */
  readonly bound: string | null
  /** The key of the step that it was forked at, and its run. */
  readonly forked: string | null
}

export interface StepRow {
  readonly run: string
  readonly key: string
  readonly step: string
  readonly branch: string
  readonly tick: number
  readonly state: string
  readonly kind: string
  readonly plan: string | null
}

/** What is recorded, seen from outside. */
export function stateOf({ look }: World['database']): Rows {
  return {
    runs: look(
      'select id, state, failure, takeovers, cancelled_at as cancelled, continues, if_parent_ends as bound, forked_from as forked from onceonly_runs order by id',
    ) as Rows['runs'],
    steps: look(
      'select run_id as run, key, step_id as step, branch, tick, state, kind, plan from onceonly_run_steps order by run_id, position',
    ) as Rows['steps'],
  }
}

/** The last name of a path: programs give every part a name of its own. */
export function partOf({ run, step }: Pick<StepRow, 'run' | 'step'>): string {
  return `${run} ${step.split('/').at(-1)}`
}

/** What must be so at the end of every simulation, whatever happened in it. */
export function judge(world: World, cancelled: ReadonlySet<string>): void {
  const { database, outside, programOf, breaks } = world
  const { runs, steps } = stateOf(database)
  judgeFailures(runs, breaks)
  const byRun = Map.groupBy(steps, ({ run }) => run)
  for (const run of runs) {
    for (const { id } of everyPart(programOf(run.id) ?? [])) {
      const count = outside.performed(`${run.id} ${id}`)
      if (count > 1) breaks('performed_twice', `${run.id} ${id}: ${count} times`)
    }
    const own = byRun.get(run.id) ?? []
    for (const step of own.filter(({ kind, state }) => kind === 'channel' && state === 'succeeded')) {
      // What a fork has copied was performed by the run that it was forked off, or by one before that.
      const origin = run.forked?.slice(run.forked.indexOf(' ') + 1)
      const names = [partOf(step), ...(origin === undefined ? [] : [partOf({ ...step, run: origin })])]
      if (names.every((name) => outside.performed(name) === 0)) breaks('not_performed', partOf(step))
    }
    // Of a run that has continued as new ones the last is cancelled.
    const isMeant = [...cancelled].some((id) => run.id === id || run.id.startsWith(`${id}#`))
    if (run.state === 'cancelled' && programOf(run.id) !== null && !isMeant) breaks('cancelled_by_none', run.id)
    if (run.state === 'cancelled' && run.bound === 'continue') breaks('cancelled_by_none', `${run.id} was to continue`)
    judgeCleanUps(run, own, breaks)
  }
  judgeAttributes(runs, byRun, database, breaks)
}

const isCleanUp = ({ branch }: StepRow) => branch.startsWith('$cancel/')
/** What a run declared last is undone first: where it declared it, below the clean-ups. */
const undoPath = ({ step, tick }: StepRow) => `$cancel/${step}${tick === 0 ? '' : `,${tick + 1}`}`

function judgeCleanUps({ id, state, cancelled, failure }: RunState, own: readonly StepRow[], breaks: Breaks): void {
  const undone = own.filter(isCleanUp)
  if (cancelled === null && undone.length > 0) breaks('undone_without_cancel', `${id}: ${JSON.stringify(undone[0])}`)
  const isLate = state === 'failed' && (JSON.parse(failure ?? '{}') as { code?: string }).code === 'run_timed_out'
  if (state !== 'cancelled' && !isLate) return
  const declared = own.filter((step) => step.kind === 'clean-up' && !isCleanUp(step))
  const inOrder = declared
    .filter(({ branch }) => branch === '')
    .toReversed()
    .map(undoPath)
  for (const each of declared) {
    const path = undoPath(each)
    const ends = undone.filter((step) => step.branch === path && step.kind === 'channel')
    if (ends.length !== 1 || ends[0]?.state !== 'succeeded')
      breaks('not_undone', `${id}: ${path}: ${JSON.stringify(ends)}`)
  }
  const came = [...new Set(undone.map(({ branch }) => branch))].filter((branch) => inOrder.includes(branch))
  if (came.join() !== inOrder.join())
    breaks('undone_out_of_order', `${id}: ${came.join()} instead of ${inOrder.join()}`)
}

/** What the journal of a run says, on top of what the run before it left. */
function judgeAttributes(
  runs: Rows['runs'],
  byRun: ReadonlyMap<string, readonly StepRow[]>,
  { look }: SimulatedDatabase,
  breaks: Breaks,
): void {
  const before = new Map(runs.map(({ id, continues }) => [id, continues]))
  const journalOf = (id: string): object => {
    const earlier = before.get(id) ?? null
    const own = (byRun.get(id) ?? []).filter(({ kind }) => kind === 'attributes')
    return Object.assign(earlier === null ? {} : journalOf(earlier), ...own.map(({ plan }) => JSON.parse(plan ?? '{}')))
  }
  const rows = look('select run_id as run, name, value from onceonly_run_attributes') as readonly {
    readonly run: string
    readonly name: string
    readonly value: string
  }[]
  const textOf = (found: object) => JSON.stringify(Object.entries(found).toSorted(([a], [b]) => (a < b ? -1 : 1)))
  for (const { id } of runs) {
    const found = Object.fromEntries(
      rows.flatMap(({ run, name, value }) => (run === id ? [[name, JSON.parse(value)]] : [])),
    )
    const wanted = journalOf(id)
    if (textOf(found) !== textOf(wanted)) breaks('attributes_differ', `${id}: ${textOf(found)}, not ${textOf(wanted)}`)
  }
}

/** Reads behind its last cursor after every commit, as a client does: nothing may come before what it has seen. */
export function watchEvents({ watch, look }: SimulatedDatabase, breaks: Breaks): void {
  const seen = new Map<string, { last: number; count: number }>()
  watch(() => {
    const rows = look(
      `select run_id as run, max(position) as last, count(*) as count from onceonly_run_steps where kind = 'event' group by run_id`,
    ) as readonly { readonly run: string; readonly last: number; readonly count: number }[]
    for (const { run, last, count } of rows) {
      const before = seen.get(run)
      if (before !== undefined && before.count !== count && last === before.last)
        breaks('event_missed', `${run}: ${count - before.count} more, none behind ${last}`)
      seen.set(run, { last, count })
    }
  })
}

/** Nothing of the body is recorded any more once a run is cancelled, or its time is over. */
export function watchCancels({ watch, look }: SimulatedDatabase, breaks: Breaks): void {
  const seen = new Map<string, number>()
  watch(() => {
    const rows = look(
      `select id, (select count(*) from onceonly_run_steps where run_id = id and kind not in ('race', 'all', 'end')
          and substr(branch, 1, 7) <> '$cancel') as count
        from onceonly_runs where cancelled_at is not null`,
    ) as readonly { readonly id: string; readonly count: number }[]
    const now = new Map(rows.map(({ id, count }) => [id, count]))
    for (const [id, count] of now)
      if (count > (seen.get(id) ?? count)) breaks('acted_after_cancel', `${id}: ${count} lines, ${seen.get(id)} before`)
    // One that was resumed continues.
    seen.clear()
    for (const [id, count] of now) seen.set(id, count)
  })
}

/** Unchanged code takes the way that it took: also a run that was resumed since then must not have left it. */
export function judgeFailures(runs: Rows['runs'], breaks: Breaks): void {
  for (const { id, failure } of runs)
    if (failure?.includes('run_diverged') === true) breaks('diverged', `${id}: ${failure}`)
}

/** Unchanged code, replayed, comes to the same. */
export async function judgeReplays(world: World): Promise<void> {
  const { simulation, database, programOf, join, breaks } = world
  const { runs } = stateOf(database)
  const looking = (async () => {
    const { engine } = await join(simulation.process(), false)
    for (const { id: runId } of runs.filter(({ id }) => programOf(id) !== null)) {
      const { verdict, steps, result } = await engine.replay(runId)
      const changed = steps.filter(({ status }) => status !== 'same')
      if (verdict !== 'identical') breaks('replay_differs', `${runId}: ${JSON.stringify({ changed, result })}`)
    }
  })()
  await simulation.run({ untilMs: Number.POSITIVE_INFINITY, events: 2_000 })
  await looking
}
