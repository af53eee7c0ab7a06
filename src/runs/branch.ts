import type { Entry, EntryKind, RecordedValue, ValueTypes } from './entry.ts'
import { pathOf, stepKey } from './key.ts'
import { checkName } from './names.ts'
import { diverged, overlaps } from './problems.ts'

/** One line of execution. Steps within it come one after the other, so that their order can be compared. */
export interface Branch {
  readonly path: string
  /** Fires when the branch lost a race. */
  signal: AbortSignal
  /** What was recorded here before, in order. */
  readonly recorded: readonly Entry[]
  /** The first entry of a branch below this one that the body has not reached again. */
  ahead(): Entry | undefined
  /** What is recorded above it and comes later: then the run has left this branch before. */
  behind(): Entry | undefined
  /** Whether a step of it was announced and may have begun, though nothing is recorded of it. */
  mayHaveLeft(): boolean
  /** How many of its own entries the body has reached again. */
  passed: number
  /** Values of the next recorded entry that the body has asked for again. */
  valuesRead: number
  /** Values of now, which go with the next entry that is written. */
  fresh: RecordedValue[]
  /** The step that is under way. */
  pending: string | null
}

/** Where one execution of a step stands. */
export interface Place {
  readonly branch: Branch
  readonly stepId: string
  readonly tick: number
  readonly key: string
  readonly kind: EntryKind
  readonly recorded: Entry | null
  readonly values: readonly RecordedValue[]
}

/** Whether a branch is another one, or below it. */
export function isWithin(branch: string, above: string): boolean {
  return above === '' || branch === above || branch.startsWith(`${above}/`)
}

/** One of them is above the other, or they are the same: so they never ran side by side. */
export function isOnePath(one: string, other: string): boolean {
  return isWithin(one, other) || isWithin(other, one)
}

export function createBranch(
  path: string,
  recorded: readonly Entry[],
  signal: AbortSignal,
  around: Pick<Branch, 'ahead' | 'behind' | 'mayHaveLeft'>,
): Branch {
  return { path, signal, recorded, ...around, passed: 0, valuesRead: 0, fresh: [], pending: null }
}

/** The run, and how often each of its paths was executed. */
interface Course {
  readonly runId: string
  readonly ticks: Map<string, number>
}

/** Enters the next step of a branch: its key, and what is recorded about it. */
export function enter(branch: Branch, at: Course, id: string, kind: EntryKind): Place {
  checkName('step', id)
  mustBeFree(branch, id)
  const place = come(branch, at, id, kind)
  branch.pending = id
  return place
}

function come(branch: Branch, at: Course, id: string, kind: EntryKind): Place {
  const stepId = pathOf(branch.path, id)
  const tick = at.ticks.get(stepId) ?? 0
  const key = stepKey(at.runId, stepId, tick)
  const recorded = branch.recorded[branch.passed] ?? null
  if (recorded !== null) mustBe(recorded, { stepId, tick, kind }, branch.valuesRead)
  else if (kind !== 'end') mustNotBeBefore(branch.ahead() ?? branch.behind(), { stepId, tick, kind })
  at.ticks.set(stepId, tick + 1)
  const values = recorded?.values ?? branch.fresh
  branch.fresh = []
  branch.valuesRead = 0
  branch.passed += 1
  return { branch, stepId, tick, key, kind, recorded, values }
}

/**
 * Branches side by side need no line in the journal, unless the body asked for values before them: those must be recorded
 * before any step depends on them.
 */
export function enterAll(branch: Branch, at: Course, id: string): Place | null {
  const next = branch.recorded[branch.passed]
  const kept = next?.kind === 'all' && next.stepId === pathOf(branch.path, id)
  return kept || branch.fresh.length > 0 ? enter(branch, at, id, 'all') : null
}

/** No name that users give begins so. */
const END = '$end'

/**
 * The last values that a branch asked for have no step behind them to be recorded with: they get a line of their own,
 * before anything outside the branch sees them. Null when there is nothing to record.
 */
export function enterEnd(branch: Branch, at: Course): Place | null {
  const next = branch.recorded[branch.passed]
  const kept = next === undefined ? branch.fresh.length > 0 : next.kind === 'end'
  return kept ? come(branch, at, END, 'end') : null
}

/** A second step at the same time would have no order, and recovery none to compare with. */
export function mustBeFree({ path, pending }: Branch, id: string): void {
  if (pending !== null) throw overlaps(path, pending, id)
}

function mustBe(recorded: Entry, found: Pick<Place, 'stepId' | 'tick' | 'kind'>, valuesRead: number): void {
  const { stepId, tick, kind } = recorded
  if (stepId !== found.stepId || tick !== found.tick || kind !== found.kind) {
    const text = `Where ${stepId} was recorded, the run now comes to ${found.stepId}.`
    throw diverged(text, { step: stepId, tick, kind }, { step: found.stepId, tick: found.tick, kind: found.kind })
  }
  // Code may forget a version once no run is older than it; a time or a number it may not.
  const left = recorded.values.slice(valuesRead).find((value) => value.kind !== 'version')
  if (left === undefined) return
  throw diverged(`Before ${stepId} the run asked for \`${left.kind}\`, and now it does not.`, { ...left }, null)
}

/** Branches leave no line of their own: steps recorded in them show that the run has passed this place. */
function mustNotBeBefore(ahead: Entry | undefined, found: Pick<Place, 'stepId' | 'tick' | 'kind'>): void {
  if (ahead === undefined || isWithin(ahead.branch, found.stepId)) return
  const text = `Where ${ahead.stepId} was recorded, the run now comes to ${found.stepId}.`
  throw diverged(
    text,
    { step: ahead.stepId, tick: ahead.tick, kind: ahead.kind },
    { step: found.stepId, tick: found.tick, kind: found.kind },
  )
}

/** A recorded value, or a new one that is kept with the next entry. */
export function valueOf<K extends keyof ValueTypes>(branch: Branch, kind: K, make: () => ValueTypes[K]): ValueTypes[K] {
  const next = branch.recorded[branch.passed]
  if (next === undefined) {
    const value = make()
    branch.fresh.push({ kind, value } as RecordedValue)
    return value
  }
  while (next.values[branch.valuesRead]?.kind === 'version') branch.valuesRead += 1
  const recorded = next.values[branch.valuesRead]
  if (recorded?.kind !== kind) {
    throw diverged(`Before ${next.stepId} the run now asks for \`${kind}\`.`, recorded ?? null, { kind })
  }
  branch.valuesRead += 1
  return recorded.value as ValueTypes[K]
}

/** A run that passed here before the change took the old path, and stays on it. */
export function versionOf(branch: Branch, name: string): boolean {
  checkName('version', name)
  const next = branch.recorded[branch.passed]
  if (next === undefined) {
    if ((branch.ahead() ?? branch.behind()) !== undefined || branch.mayHaveLeft()) return false
    branch.fresh.push({ kind: 'version', value: name })
    return true
  }
  // Others that were asked for here may be forgotten by now, or stand in another order.
  return next.values.some(({ kind, value }) => kind === 'version' && value === name)
}
