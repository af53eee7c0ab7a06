import { decodeValue } from '../ledger/core/codec.ts'
import { OnceError } from '../ledger/core/errors.ts'
import { checkAttributes } from './attributes.ts'
import { isOnePath, isWithin } from './branch.ts'
import { childFailed, childWork, readChild } from './child-plan.ts'
import type { CleanUp } from './clean-up-path.ts'
import { hasSlept, isCleanUp } from './clean-up-path.ts'
import type { RunContext } from './context.ts'
import type { Ticks } from './declarations.ts'
import type { Entry, EntryKind, RecordedValue, RunRow, ValueTypes } from './entry.ts'
import type { Won } from './fork.ts'
import { readWon } from './fork.ts'
import { pathOf, stepKey } from './key.ts'
import { checkName } from './names.ts'
import { stepFailed, tooLong } from './problems.ts'
import { recordedText } from './recordable.ts'
import type { StepFunction, StepOptions } from './steps.ts'
import { workOf } from './steps.ts'

/** One step, as today's code reaches it. */
export interface ReplayedStep {
  readonly stepId: string
  readonly tick: number
  readonly key: string
  readonly kind: EntryKind
  readonly recorded: Entry | null
  /** What would be done; undefined where a step cannot be evaluated without performing it. */
  readonly plan: { readonly value: unknown } | undefined
  /** Of the declared input. */
  readonly fingerprint: string | null
  /** Places of the plan that its author declared. */
  readonly unstable: readonly string[]
  /** The run itself has not come here yet. */
  readonly pending: boolean
}

/** The stage of a replay: what was recorded, and what the code reached. It cannot act. */
export interface Stage {
  readonly run: RunRow
  readonly ticks: Map<string, number>
  /** Settles when the code waits for something that was never recorded. */
  stuck(): Promise<void>
  /** The input with which the code would continue as a new run. */
  readonly continued: Promise<unknown>
  continueWith(input: unknown): void
  /** What the code declared for a cancel. */
  readonly cleanUps: CleanUp[]
  /** Whether the run declared a clean-up below a path before these ticks. */
  hasDeclared(path: string, before: Ticks): boolean
  /** Whether something is recorded behind a sleep that shows that it was over. */
  isPassed(slept: Entry, counts?: (line: Entry) => boolean): boolean
  steps(): readonly ReplayedStep[]
  came(step: Omit<ReplayedStep, 'recorded' | 'pending'>, branch: string): ReplayedStep
  /** The same for a branch that lost: what it did is behind the run, and is not compared. */
  passed(step: Omit<ReplayedStep, 'recorded' | 'pending'>, branch: string): ReplayedStep
  /** Throws where the journal of the run had no room for a line that only keeps values. */
  mustHaveRoom(branch: string, stepId: string): void
  /** Whether this is what was recorded next in a branch. */
  isNext(branch: string, stepId: string, kind: EntryKind): boolean
  /** The next value that was recorded in a branch, if it is of this kind. */
  value(branch: string, kind: keyof ValueTypes): RecordedValue | undefined
  /** Whether the run knew a change when it reached this place of a branch. */
  isKnown(branch: string, version: string): boolean
  /** Whether something is recorded in branches below a path that has no line itself. */
  isOpen(path: string): boolean
  /** Of a step that was never recorded: nothing is known, and the code continues with `undefined`. */
  guess(): Promise<undefined>
  /** Whether anything was guessed: what the code throws after that may be owed to it. */
  readonly hasGuessed: boolean
  /** Waits for something that the run has not reached yet, or that cannot be guessed. */
  hold(step: Pick<ReplayedStep, 'recorded' | 'pending'>): Promise<never>
  /** Whether the code waits for something new, so that nothing can be said about what was recorded behind it. */
  readonly isCut: boolean
}

interface Full {
  readonly step: string
  readonly most: string
}

/** Code that repeats a new step until it answers something would never end. */
const MOST_GUESSES = 100

export function createStage(run: RunRow, entries: readonly Entry[]): Stage {
  const lines = entries.filter(({ kind }) => kind !== 'end')
  const byKey = new Map(lines.map((entry) => [entry.key, entry]))
  const byBranch = Map.groupBy(lines, ({ branch }) => branch)
  const passed = new Map<string, number>()
  const { values, versions } = askedFor(entries)
  const steps: ReplayedStep[] = []
  const cleanUps: CleanUp[] = []
  const continued = Promise.withResolvers<unknown>()
  let stuck = Promise.withResolvers<void>()
  /** The journal was full: every step that is not in it failed so. */
  const full = run.failure?.code === 'run_too_long' ? (run.failure.data as Full | undefined) : undefined
  let guesses = 0
  let isCut = false
  function pass(step: Omit<ReplayedStep, 'recorded' | 'pending'>, branch: string): ReplayedStep {
    const recorded = byKey.get(step.key) ?? null
    if (recorded === null && full !== undefined) throw tooLong(run.id, step.stepId, full.most)
    const place = passed.get(branch) ?? 0
    if (recorded !== null) passed.set(branch, place + 1)
    const isOpenRun = run.endedAt === null || run.cancelledAt !== null
    const pending = recorded === null && isOpenRun && place >= (byBranch.get(branch)?.length ?? 0)
    return { ...step, recorded, pending }
  }

  function hold({ recorded, pending }: Pick<ReplayedStep, 'recorded' | 'pending'>): Promise<never> {
    if (recorded === null && !pending) isCut = true
    // After everything that is ready now: other branches may still reach their next step.
    setImmediate(() => stuck.resolve())
    return new Promise<never>(() => {})
  }
  return {
    run,
    ticks: new Map(),
    stuck: () => (stuck = Promise.withResolvers<void>()).promise,
    cleanUps,
    hasDeclared: (path, before) =>
      lines.some(
        ({ kind, branch, stepId, tick }) =>
          kind === 'clean-up' && isWithin(branch, path) && tick < (before[stepId] ?? 0),
      ),
    continued: continued.promise,
    continueWith: continued.resolve,
    isPassed: (slept, counts = () => true) => entries.some((line) => isBehind(line, slept) && counts(line)),
    steps: () => steps,
    came(step, branch) {
      const known = pass(step, branch)
      steps.push(known)
      return known
    },
    passed: pass,
    mustHaveRoom(branch, stepId) {
      const isBehindAll = (passed.get(branch) ?? 0) >= (byBranch.get(branch)?.length ?? 0)
      if (full?.step === stepId && isBehindAll) throw tooLong(run.id, stepId, full.most)
    },
    isNext(branch, stepId, kind) {
      const next = byBranch.get(branch)?.[passed.get(branch) ?? 0]
      return next?.stepId === stepId && next.kind === kind
    },
    value(branch, kind) {
      const list = values.get(branch)
      return list?.[0]?.kind === kind ? list.shift() : undefined
    },
    isKnown: (branch, version) => versions.has(versionAt(branch, passed.get(branch) ?? 0, version)),
    isOpen: (path) =>
      !lines.some(({ stepId }) => stepId === path) &&
      lines.some((entry) => entry.branch !== '' && isWithin(entry.branch, path)),
    hold,
    guess: () => (++guesses > MOST_GUESSES ? hold({ recorded: null, pending: false }) : Promise.resolve(undefined)),
    get hasGuessed() {
      return guesses > 0
    },
    get isCut() {
      return isCut
    },
  }
}

/** Whether one line stands behind another one, and not beside it. What cleans up stands apart from the body. */
function isBehind(line: Entry, { branch, position }: Entry): boolean {
  return line.position > position && isOnePath(line.branch, branch) && isCleanUp(line.branch) === isCleanUp(branch)
}

/** What the run asked for: values in order, and versions by their place, because code may forget a version. */
function askedFor(entries: readonly Entry[]) {
  const values = new Map<string, RecordedValue[]>()
  const versions = new Set<string>()
  for (const [branch, list] of Map.groupBy(entries, (entry) => entry.branch)) {
    let place = 0
    for (const entry of list) {
      for (const { kind, value } of entry.values) if (kind === 'version') versions.add(versionAt(branch, place, value))
      if (entry.kind !== 'end') place += 1
    }
    values.set(
      branch,
      list.flatMap((entry) => entry.values).filter(({ kind }) => kind !== 'version'),
    )
  }
  return { values, versions }
}

function versionAt(branch: string, place: number, version: string): string {
  return `${place} ${branch} ${version}`
}

const NOTHING_DECLARED = { fingerprint: null, unstable: [] } as const

/** The context of a replay: recorded results are fed forward, channel steps are evaluated, and nothing is performed. */
export function createReplayContext(stage: Stage, branch: string): RunContext {
  const { run, ticks } = stage
  const never = new AbortController()

  function came(
    id: string,
    kind: EntryKind,
    plan?: { readonly value: unknown },
    { fingerprint, unstable }: Pick<ReplayedStep, 'fingerprint' | 'unstable'> = NOTHING_DECLARED,
  ): ReplayedStep {
    checkName('step', id)
    const stepId = pathOf(branch, id)
    const tick = ticks.get(stepId) ?? 0
    ticks.set(stepId, tick + 1)
    return stage.came({ stepId, tick, key: stepKey(run.id, stepId, tick), kind, plan, fingerprint, unstable }, branch)
  }

  async function fed(step: ReplayedStep): Promise<unknown> {
    const { recorded } = step
    if (recorded?.state === 'succeeded')
      return step.kind === 'child' ? readChild(recorded.result ?? '').value : decodeValue(recorded.result ?? '')
    if (recorded?.state === 'failed') throw step.kind === 'child' ? childFailed(recorded) : stepFailed(recorded)
    const isNew = recorded === null && !step.pending
    return isNew && step.kind !== 'signal' ? stage.guess() : stage.hold(step)
  }

  async function step(id: string, given: StepOptions | StepFunction, act?: StepFunction): Promise<unknown> {
    const options = typeof given === 'function' ? {} : given
    const { kind, work } = workOf(id, options, typeof given === 'function' ? given : act)
    const plan = work.plan === null ? undefined : { value: decodeValue(work.plan) }
    return fed(came(id, kind, plan, work))
  }

  /** What has no result: where the run has not come here yet, nothing behind it is known. */
  async function holdIfPending(step: ReplayedStep): Promise<void> {
    if (step.recorded === null && step.pending) await stage.hold(step)
  }

  function value<K extends keyof ValueTypes>(kind: K, make: () => ValueTypes[K]): ValueTypes[K] {
    const recorded = stage.value(branch, kind)
    return recorded === undefined ? make() : (recorded.value as ValueTypes[K])
  }

  const below = (id: string, name: string) => createReplayContext(stage, pathOf(pathOf(branch, id), name))
  return {
    runId: run.id,
    signal: never.signal,
    step: step as RunContext['step'],
    async sleep(id, ms) {
      const slept = came(id, 'sleep', { value: { ms } })
      const { recorded, pending } = slept
      if (recorded === null && !pending) await stage.guess()
      else if (recorded === null || isStillAsleep(recorded)) await stage.hold(slept)
    },
    async waitFor(name) {
      const received = (await fed(came(name, 'signal'))) as { received: never }
      return received.received
    },
    child: async (definition, options) => {
      const { plan, fingerprint } = childWork(definition, options)
      const work = { fingerprint, unstable: [] }
      return (await fed(came(definition.name, 'child', { value: decodeValue(plan) }, work))) as never
    },
    emit: async (name, value) => {
      const plan = { value: decodeValue(recordedText(`The event ${name}`, value)) }
      await holdIfPending(came(name, 'event', plan))
    },
    setAttributes: async (attributes) => {
      checkAttributes(attributes)
      await holdIfPending(came('attributes', 'attributes', { value: attributes }))
    },
    continueAsNew(input) {
      stage.continueWith(decodeValue(recordedText('The input of the next run', input)))
      return new Promise<never>(() => {})
    },
    async onCancel(id, act) {
      const declared = came(id, 'clean-up')
      if (declared.recorded === null && declared.pending) await stage.hold(declared)
      if (!isCleanUp(branch)) stage.cleanUps.push({ path: pathOf(branch, id), act })
    },
    async all(id, branches) {
      if (stage.isNext(branch, pathOf(branch, id), 'all')) came(id, 'all')
      else stage.mustHaveRoom(branch, pathOf(branch, id))
      const names = Object.keys(branches).sort()
      const ends = await Promise.allSettled(names.map((name) => required(branches[name], name)(below(id, name))))
      const failed = ends.find((end) => end.status === 'rejected')
      if (failed !== undefined) throw failed.reason
      return Object.fromEntries(
        ends.map((end, index) => [names[index], 'value' in end ? end.value : undefined]),
      ) as never
    },
    async race(id, branches) {
      // An undecided race may have no line of its own: then the steps of its branches show it.
      const undecided = stage.isOpen(pathOf(branch, id))
      const race = undecided ? null : came(id, 'race')
      if (race?.recorded?.result === undefined || race.recorded.result === null) {
        if (race !== null && race.recorded === null) await stage.hold(race)
        return firstOf(branches, (name) => below(id, name)) as never
      }
      const won = readWon(race.recorded.result)
      const body = Object.hasOwn(branches, won.winner) ? branches[won.winner] : undefined
      // Only the winner is followed: what the others did was abandoned, and is behind the next turn. What they declared is not.
      const losers = Object.keys(branches).filter((name) => run.cancelledAt !== null && name !== won.winner)
      await Promise.all(
        losers.map((name) => follow(pathOf(pathOf(branch, id), name), required(branches[name], name), won)),
      )
      const replayed = body === undefined ? undefined : await body(below(id, won.winner))
      for (const [path, tick] of Object.entries(won.ticks)) ticks.set(path, Math.max(tick, ticks.get(path) ?? 0))
      return { winner: won.winner, value: replayed } as never
    },
    now: () => value('now', () => run.startedAt),
    random: () => value('random', () => 0.5),
    uuid: () => value('uuid', () => '00000000-0000-4000-8000-000000000000'),
    version: (name) => stage.isKnown(branch, name),
  }

  /** Follows a branch that lost as far as it came, for the clean-ups that it declared. */
  async function follow(
    path: string,
    body: (run: RunContext) => Promise<unknown>,
    { ticks: before }: Won,
  ): Promise<void> {
    if (!stage.hasDeclared(path, before)) return
    const held = Promise.withResolvers<void>()
    const hold = () => {
      // Branches of its own may still come to their places.
      setImmediate(held.resolve)
      return new Promise<never>(() => {})
    }
    const isOfTurn = (line: Entry) => isWithin(line.branch, path) && line.tick < (before[line.stepId] ?? 0)
    const isPassed = (slept: Entry) => stage.isPassed(slept, isOfTurn)
    const loser: Stage = { ...stage, hold, guess: hold, came: stage.passed, isPassed }
    const followed = async () => body(createReplayContext(loser, path))
    await Promise.race([held.promise, followed().catch(() => undefined)])
  }

  function isStillAsleep(slept: Entry): boolean {
    if (run.cancelledAt !== null && !isCleanUp(branch)) return !hasSlept(slept, run.cancelledAt, stage.isPassed(slept))
    return run.endedAt === null && slept.state === 'waiting' && run.state === 'sleeping' && !stage.isPassed(slept)
  }
}

/** As the run itself does it: the first branch that succeeds, else the error of the first one by name. */
async function firstOf(
  branches: Readonly<Record<string, (run: RunContext) => Promise<unknown>>>,
  inside: (name: string) => RunContext,
): Promise<unknown> {
  const names = Object.keys(branches).sort()
  return Promise.any(
    names.map(async (winner) => ({ winner, value: await required(branches[winner], winner)(inside(winner)) })),
  ).catch((error: unknown) => {
    throw error instanceof AggregateError ? error.errors[0] : error
  })
}

function required<T>(body: T | undefined, name: string): T {
  if (body === undefined) throw new OnceError('bad_option', `The branch ${name} has no function.`)
  return body
}
