import { decodeValue } from '../ledger/core/codec.ts'
import { OnceError } from '../ledger/core/errors.ts'
import { limits } from '../ledger/core/limits.ts'
import type { Failure } from '../ledger/core/verdict.ts'
import { failureOf } from '../ledger/core/verdict.ts'
import { readChild } from './child-plan.ts'
import { cleanUpPath } from './clean-up-path.ts'
import type { RunDefinition } from './definition.ts'
import type { Difference } from './diff.ts'
import { differences, isIgnored, longestRising } from './diff.ts'
import type { Entry, RunRow } from './entry.ts'
import { COPIED } from './entry.ts'
import { RunError } from './errors.ts'
import { readWon } from './fork.ts'
import { withoutNetwork } from './no-network.ts'
import type { ReplayedStep, Stage } from './replay-context.ts'
import { createReplayContext, createStage } from './replay-context.ts'

export interface ReplayOptions {
  /** Performs nothing; the default. @default true */
  readonly dryRun?: boolean
  /**
   * Places that may differ, `step: path`, as `welcome: $.headers.date`; `*` stands for any step or any name.
   * @default none
   */
  readonly ignore?: readonly string[]
  /** How long the evaluation may take, in real time, before it is refused with `replay_timed_out`. @default 30_000 */
  readonly timeoutMs?: number
}

export type Verdict = 'identical' | 'identical-but-for-ignored-paths' | 'diverged'

/** What the code of today makes of a run of yesterday. */
export interface Replay {
  readonly runId: string
  readonly verdict: Verdict
  /** Actions that were performed: none, in a dry run. */
  readonly performed: number
  /** What the code tried to reach over the network, and was refused. */
  readonly blocked: readonly string[]
  /** Steps that cannot be evaluated without performing them: nothing can be said about what they would do. */
  readonly unevaluated: number
  readonly steps: readonly ReplayStep[]
  readonly result: Compared
}

export interface Compared {
  readonly original: unknown
  readonly replayed: unknown
  readonly identical: boolean | null
  readonly diff: readonly Difference[]
}

export interface ReplayStep {
  readonly id: string
  readonly key: string
  readonly tick: number
  /**
   * `pending`: the run has not come here yet. `moved`: it comes here at another time than it did. `unreached`: the replay
   * did not come so far, because the code wants something before it that was never recorded.
   */
  readonly status: 'same' | 'changed' | 'added' | 'removed' | 'moved' | 'pending' | 'unreached'
  readonly evaluated: boolean
  readonly originalResult: unknown
  readonly replayedResult: unknown
  /** Null where the step was not evaluated. */
  readonly identical: boolean | null
  readonly diff: readonly Difference[]
}

/**
 * What a run did is known for so long after its end. Later nothing is said about it, whether it was swept yet or not.
 */
export function isKept({ endedAt }: RunRow, now: number): boolean {
  return endedAt === null || now - endedAt <= limits.runKeepMs
}

/** A run that was started by newer code cannot be compared with code that does not know of it. */
export function isKnownBy(definition: RunDefinition | undefined, { version }: RunRow): definition is RunDefinition {
  return definition !== undefined && definition.version >= version
}

/** Evaluates a run again, with its recorded results as inputs, and compares. */
export async function replayRun(
  run: RunRow,
  entries: readonly Entry[],
  definition: RunDefinition,
  { ignore = [], timeoutMs = limits.runEvaluateMs }: ReplayOptions,
): Promise<Replay> {
  if (!(timeoutMs >= 1 && timeoutMs <= limits.runTimerMs)) {
    throw new OnceError('bad_option', `The timeoutMs of a replay is from 1 to ${limits.runTimerMs}, not ${timeoutMs}.`)
  }
  const stage = createStage(run, entries)
  const { value: end, refused } = await withoutNetwork(() => evaluate(stage, definition, timeoutMs))
  // Code that got `undefined` for an unrecorded step may throw for that alone: this says nothing about the run.
  const owedToGuess = end.kind === 'threw' && stage.hasGuessed && resultOf(run, end).identical !== true
  const steps = stepsOf(stage.steps(), entries, ignore, stage.isCut || owedToGuess)
  const result = resultOf(run, owedToGuess ? { kind: 'stuck' } : end)
  const verdict = verdictOf(steps, result, ignore)
  const unevaluated = steps.filter(({ evaluated, status }) => !evaluated && status === 'same').length
  return { runId: run.id, verdict, performed: 0, blocked: refused, unevaluated, steps, result }
}

/** Calls the body. It may await something that no record has, so the time is bounded. */
async function evaluate(stage: Stage, definition: RunDefinition, timeoutMs: number): Promise<End> {
  const body = async () => definition.body(createReplayContext(stage, ''), decodeValue(stage.run.input))
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(timedOut(stage, timeoutMs)), timeoutMs)
  try {
    const end = await Promise.race([endOf(stage, body), late.promise])
    if (stage.run.cancelledAt === null) return end
    // What the body came to does not count any more: the clean-ups that it declared run, the last one first.
    return await Promise.race([endOf(stage, () => cleanUpAll(stage)), late.promise])
  } finally {
    clearTimeout(timer)
  }
}

async function cleanUpAll(stage: Stage): Promise<undefined> {
  for (const { path, act } of stage.cleanUps.toReversed()) await act(createReplayContext(stage, cleanUpPath(path)))
}

function endOf(stage: Stage, work: () => Promise<unknown>): Promise<End> {
  const stuck = stage.stuck()
  return Promise.race([
    work().then(
      (value): End => ({ kind: 'returned', value }),
      (error: unknown): End => ({ kind: 'threw', failure: failureOf(error) }),
    ),
    stuck.then((): End => ({ kind: 'stuck' })),
    stage.continued.then((input): End => ({ kind: 'continued', input })),
  ])
}

function timedOut(stage: Stage, timeoutMs: number): OnceError {
  const last = stage.steps().at(-1)?.stepId ?? null
  const where = last === null ? 'before its first step' : `behind ${last}`
  return new RunError(
    'replay_timed_out',
    `The replay of ${stage.run.id} still waited ${where} after ${timeoutMs} ms.`,
    {
      details: { runId: stage.run.id, behind: last },
    },
  )
}

type End =
  | { readonly kind: 'returned'; readonly value: unknown }
  | { readonly kind: 'threw'; readonly failure: Failure }
  /** It would continue as a new run, with this input. */
  | { readonly kind: 'continued'; readonly input: unknown }
  /** It waits for something that the record does not have. */
  | { readonly kind: 'stuck' }

function resultOf(run: RunRow, end: End): Compared {
  const recorded = run.result === null ? undefined : decodeValue(run.result)
  const original = run.continuedAs === null ? recorded : { continueAsNew: recorded }
  switch (end.kind) {
    case 'continued': {
      const replayed = { continueAsNew: end.input }
      const diff = run.state === 'succeeded' ? differences(original, replayed) : []
      const identical = run.state === 'succeeded' ? diff.length === 0 : run.endedAt === null ? null : false
      return { original, replayed, identical, diff }
    }
    case 'returned': {
      const diff = run.state === 'succeeded' ? differences(original, end.value) : []
      // What the body returned beside its clean-ups does not count.
      const isOpen = run.endedAt === null || run.state === 'cancelled' || wasLate(run)
      const identical = run.state === 'succeeded' ? diff.length === 0 : isOpen ? null : false
      return { original, replayed: end.value, identical, diff }
    }
    case 'threw': {
      // The class of an error and its text are compared; what it carries may hold times.
      const before = run.failure === null ? undefined : { name: run.failure.name, code: run.failure.code }
      const after = { name: end.failure.name, code: end.failure.code }
      const diff = before === undefined ? [] : differences(before, after)
      const identical = run.state === 'failed' ? diff.length === 0 : run.endedAt === null ? null : false
      return { original: run.failure ?? original, replayed: end.failure, identical, diff }
    }
    case 'stuck':
      return { original, replayed: undefined, identical: run.state === 'succeeded' ? false : null, diff: [] }
  }
}

function wasLate({ cancelledAt, failure }: RunRow): boolean {
  return cancelledAt !== null && failure?.code === 'run_timed_out'
}

function stepsOf(
  replayed: readonly ReplayedStep[],
  entries: readonly Entry[],
  ignore: readonly string[],
  isCut: boolean,
): ReplayStep[] {
  const came = new Set(replayed.map(({ key }) => key))
  const lost = losersOf(entries)
  const missing = entries.filter(({ key, kind, branch }) => kind !== 'end' && !came.has(key) && !lost(branch))
  const removed = missing.map((entry) => missingStep(entry, isCut))
  const moved = movedOf(replayed)
  return [...replayed.map((step) => comparedStep(step, ignore, moved.has(step.key))), ...removed]
}

/** The fewest steps that must have been put elsewhere for the others of their branch to stand as they did. */
function movedOf(replayed: readonly ReplayedStep[]): ReadonlySet<string> {
  const known = replayed.flatMap(({ recorded }) => recorded ?? [])
  const branches = [...Map.groupBy(known, ({ branch }) => branch).values()]
  const inOrder = new Set(branches.flatMap((list) => longestRising(list, ({ position }) => position)))
  return new Set(known.filter((entry) => !inOrder.has(entry)).map(({ key }) => key))
}

/** Branches that lost a race: they are not replayed, so their steps do not count as missing. */
function losersOf(entries: readonly Entry[]): (branch: string) => boolean {
  const races = entries.filter(({ kind, result }) => kind === 'race' && result !== null)
  const won = races.map(({ stepId, result }) => ({
    race: `${stepId}/`,
    winner: `${stepId}/${readWon(result ?? '').winner}/`,
  }))
  return (branch) => won.some(({ race, winner }) => `${branch}/`.startsWith(race) && !`${branch}/`.startsWith(winner))
}

function comparedStep(step: ReplayedStep, ignore: readonly string[], moved: boolean): ReplayStep {
  const { stepId: id, key, tick, recorded, plan } = step
  const evaluated = plan !== undefined
  const known = { id, key, tick, evaluated }
  if (recorded === null) {
    const status = step.pending ? 'pending' : 'added'
    return { ...known, status, originalResult: undefined, replayedResult: plan?.value, identical: false, diff: [] }
  }
  const original = viewOf(recorded)
  const fed = { ...known, originalResult: original, replayedResult: original }
  if (recorded.fingerprint === COPIED)
    return { ...fed, evaluated: false, status: moved ? 'moved' : 'same', identical: null, diff: [] }
  if (plan === undefined) return unplannedStep({ ...step, moved }, recorded, fed)
  const diff = differences(recorded.plan === null ? undefined : decodeValue(recorded.plan), plan.value)
  const counted = diff.filter(({ path }) => !isIgnored(path, [...step.unstable, ...pathsFor(id, ignore)]))
  const status = moved ? 'moved' : counted.length > 0 ? 'changed' : 'same'
  const before = { plan: recorded.plan === null ? undefined : decodeValue(recorded.plan), result: original }
  const after = { plan: plan.value, result: original }
  return { ...known, status, originalResult: before, replayedResult: after, identical: diff.length === 0, diff }
}

/** Signals and races are followed by their record; of a plain step only the declared input can be compared. */
function unplannedStep(
  { kind, moved, fingerprint }: ReplayedStep & { readonly moved: boolean },
  recorded: Entry,
  known: Omit<ReplayStep, 'status' | 'identical' | 'diff'>,
): ReplayStep {
  const sameInput = recorded.fingerprint === fingerprint
  const diff = sameInput ? [] : [{ path: '$input', original: recorded.fingerprint, replayed: fingerprint }]
  const status = moved ? 'moved' : sameInput ? 'same' : 'changed'
  if (kind !== 'step') return { ...known, status, evaluated: true, identical: true, diff }
  return { ...known, status, identical: sameInput ? null : false, diff }
}

function viewOf({ kind, result, state, failures }: Entry): unknown {
  if (state === 'failed') return { error: failures.at(-1)?.message }
  if (result === null) return undefined
  return kind === 'child' ? readChild(result).value : decodeValue(result)
}

function missingStep(entry: Entry, isCut: boolean): ReplayStep {
  const { stepId: id, key, tick } = entry
  const missing = { evaluated: false, replayedResult: undefined, diff: [], originalResult: viewOf(entry) }
  if (isCut) return { id, key, tick, status: 'unreached', identical: null, ...missing }
  return { id, key, tick, status: 'removed', identical: false, ...missing }
}

/** The declared paths of one step, without its name. */
function pathsFor(id: string, ignore: readonly string[]): string[] {
  return ignore.flatMap((each) => {
    const colon = each.indexOf(':')
    const [step, path] = colon < 0 ? ['*', each] : [each.slice(0, colon).trim(), each.slice(colon + 1).trim()]
    return step === '*' || step === id ? [path] : []
  })
}

function verdictOf(steps: readonly ReplayStep[], result: Compared, ignore: readonly string[]): Verdict {
  const whole = steps.some(({ status }) => status !== 'same' && status !== 'pending')
  const resultPaths = pathsFor('result', ignore)
  const differs =
    result.identical === false &&
    !(result.diff.length > 0 && result.diff.every(({ path }) => isIgnored(path, resultPaths)))
  if (whole || differs) return 'diverged'
  const ignored = steps.some(({ identical, status }) => identical === false && status === 'same')
  return ignored || result.identical === false ? 'identical-but-for-ignored-paths' : 'identical'
}
