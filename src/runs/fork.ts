import { decodeValue } from '../ledger/core/codec.ts'
import { OnceError } from '../ledger/core/errors.ts'
import { limits } from '../ledger/core/limits.ts'
import type { Branch, Place } from './branch.ts'
import { enterAll, enterEnd, mustBeFree } from './branch.ts'
import type { RunContext } from './context.ts'
import type { Execution } from './execution.ts'
import { never } from './execution.ts'
import { pathOf } from './key.ts'
import { checkName } from './names.ts'
import { wonLater } from './problems.ts'
import { recordedText } from './recordable.ts'

/** The context of a branch below. */
type Inside = (branch: Branch) => RunContext

type Branches = Readonly<Record<string, (run: RunContext) => Promise<unknown>>>

/** Branches side by side. All of them end before the first failure, by name, is thrown: so it is always the same. */
export async function forkAll(
  execution: Execution,
  inside: Inside,
  parent: Branch,
  id: string,
  branches: Branches,
): Promise<unknown> {
  if (parent.signal.aborted) return never()
  mustBeFree(parent, id)
  const names = namesOf(id, branches)
  const place = enterAll(parent, { runId: execution.run.id, ticks: execution.ticks }, id)
  parent.pending = id
  try {
    if (place !== null) execution.mustHaveRoom(place)
    if (place?.recorded === null) await execution.put(execution.entry(place, { state: 'succeeded' }))
    const line = execution.fork(names.length, parent.signal)
    const ends = await Promise.allSettled(
      names.map((name) => {
        const path = pathOf(pathOf(parent.path, id), name)
        return runBranch(execution, execution.branch(path, parent.signal), inside, branches[name]).finally(line.ended)
      }),
    )
    line.join()
    return resultsOf(names, ends)
  } finally {
    parent.pending = null
  }
}

function resultsOf(names: readonly string[], ends: readonly PromiseSettledResult<unknown>[]): unknown {
  const results = ends.map((end, index) => {
    if (end.status === 'rejected') throw end.reason
    return [names[index] as string, end.value] as const
  })
  // Not member by member: a branch may be called `__proto__`.
  return Object.fromEntries(results)
}

/** What is recorded of a race: its winner, and how far the steps of all its branches were. */
export interface Won {
  readonly winner: string
  readonly value: unknown
  readonly ticks: Readonly<Record<string, number>>
}

export function readWon(result: string): Won {
  return decodeValue(result) as Won
}

/** The winner is recorded before the body sees it, so that it wins again however the next execution interleaves. */
export async function forkRace(
  execution: Execution,
  inside: Inside,
  place: Place,
  branches: Branches,
): Promise<unknown> {
  const { ticks } = execution
  const names = namesOf(place.stepId, branches)
  const recorded = place.recorded?.result ?? null
  if (recorded !== null) {
    const won = readWon(recorded)
    if (execution.run.cancelledAt !== null) {
      const follow = () => followCleanUps(execution, inside, place, branches, won)
      await execution.follow(place.stepId, won.ticks, follow)
    }
    for (const [path, tick] of Object.entries(won.ticks)) ticks.set(path, tick)
    await execution.decided(place.stepId, won.winner)
    return { winner: won.winner, value: won.value }
  }
  // Values that the body asked for before must be the same when another worker drives the branches.
  if (place.recorded === null && place.values.length > 0)
    await execution.put(execution.entry(place, { state: 'waiting' }))
  const losers = new AbortController()
  const signal = AbortSignal.any([place.branch.signal, losers.signal])
  const line = execution.fork(names.length, place.branch.signal)
  const { winner, value } = await Promise.any(
    names.map(async (name) => {
      const branch = execution.branch(pathOf(place.stepId, name), signal)
      return { winner: name, value: await runBranch(execution, branch, inside, branches[name]).finally(line.ended) }
    }),
  ).catch(async (error: unknown) => {
    line.join()
    // Recorded, so that the next execution knows that this place was passed, whatever comes behind it.
    if (place.recorded?.state !== 'failed') await execution.put(execution.entry(place, { state: 'failed' }))
    throw error instanceof AggregateError ? (error.errors[0] as unknown) : error
  })
  if (place.recorded?.state === 'failed') throw wonLater(place.recorded, winner)
  losers.abort(new Error(`Another branch of ${place.stepId} was first.`))
  line.join()
  // A loser may have been further before a crash than it is now: that is behind us, too.
  const below = execution.reached(place.stepId)
  for (const [path, tick] of below) ticks.set(path, tick)
  const won = { winner, value, ticks: Object.fromEntries(below) } satisfies Won
  const result = recordedText(`What ${place.stepId} won`, won, 'let the branch return less')
  await execution.put(execution.entry(place, { state: 'succeeded', result }))
  await execution.decided(place.stepId, winner)
  return { winner, value }
}

/**
 * Of a run that was cancelled: its clean-ups are functions, which only the branches that declared them have. They are followed
 * as far as they came, whether they won or lost, because a clean-up may use what came behind it.
 */
async function followCleanUps(
  execution: Execution,
  inside: Inside,
  place: Place,
  branches: Branches,
  won: Won,
): Promise<void> {
  const pathTo = (name: string) => pathOf(place.stepId, name)
  const names = namesOf(place.stepId, branches).filter((name) =>
    execution.declarations.areOwedBelow(pathTo(name), won.ticks),
  )
  if (names.length === 0) return
  const over = new AbortController()
  const signal = AbortSignal.any([place.branch.signal, over.signal])
  const line = execution.fork(names.length, place.branch.signal)
  const followed = names.map((name) => {
    const branch = execution.branch(pathTo(name), signal)
    return runBranch(execution, branch, inside, branches[name])
      .catch(() => {})
      .finally(line.ended)
  })
  await execution.untilRest(Promise.all(followed))
  over.abort(new Error(`The race ${place.stepId} was decided before.`))
  line.join()
}

async function runBranch(
  execution: Execution,
  branch: Branch,
  inside: Inside,
  body: Branches[string] | undefined,
): Promise<unknown> {
  if (body === undefined) throw new OnceError('bad_option', `The branch ${branch.path} has no function.`)
  return keepLast(execution, branch, () => body(inside(branch))).catch(execution.endIfDiverged)
}

/**
 * The last values that a branch asked for, before it returned or threw, are recorded before anything depends on them.
 * The loser of a race has no dependents.
 */
export async function keepLast<T>(
  execution: Execution,
  branch: Branch,
  body: () => Promise<T>,
  mustBe = () => {},
): Promise<T> {
  const keep = async (state: 'succeeded' | 'failed', check: () => void) => {
    if (branch.signal.aborted) return
    const place = enterEnd(branch, { runId: execution.run.id, ticks: execution.ticks })
    check()
    if (place?.recorded === null) await execution.put(execution.entry(place, { state }))
  }
  let value: T
  try {
    value = await body()
  } catch (error) {
    await keep('failed', () => {})
    throw error
  }
  await keep('succeeded', mustBe)
  return value
}

function namesOf(id: string, branches: Branches): string[] {
  checkName('branch', id.split('/').at(-1))
  const names = Object.keys(branches).sort()
  for (const name of names) checkName('branch', name)
  if (names.length === 0 || names.length > limits.runBranches) {
    throw new OnceError('bad_option', `${id} needs 1 to ${limits.runBranches} branches.`)
  }
  return names
}
