import { limits } from '../ledger/core/limits.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Place } from './branch.ts'
import type { Entry } from './entry.ts'
import { pathOf } from './key.ts'
import type { LeftOpen } from './writes.ts'

/**
 * Which step that needs an intent came right behind which other step, in all earlier runs of this process. The record of
 * the one then announces the other, and is its intent: one commit in place of two.
 */
export interface Followers {
  of(definition: string, step: Numbered): string | null
  /** `follower` came; null where none that could be announced did, and none will be from now on. */
  learn(definition: string, step: Numbered, follower: string | null): void
}

type Numbered = Pick<Entry, 'stepId' | 'tick'>

export function createFollowers(): Followers {
  const known = new Map<string, string | null>()
  // By turn of a loop, because its last turn leads elsewhere. The name of a definition contains no slash.
  const nameOf = (definition: string, { stepId, tick }: Numbered) => `${tick}/${definition}/${stepId}`
  return {
    of: (definition, step) => (known.size === 0 ? null : (known.get(nameOf(definition, step)) ?? null)),
    learn(definition, step, follower) {
      if (follower === null && known.size === 0) return
      const name = nameOf(definition, step)
      const before = known.get(name)
      // Most steps lead to none, and those need no place here.
      if (before === follower || (before === undefined && follower === null)) return
      if (known.size >= limits.runFollowers) known.clear()
      known.set(name, before === undefined ? follower : null)
    },
  }
}

/** Of one execution of a run: the steps that begin on the announcement of the line before them. */
export interface Announced {
  /** A line of the journal was written just now. */
  wrote(entry: Entry): void
  /** The body has come to a step. Every one is looked at, so that what does not always follow is not announced. */
  came(place: Place, mayBeAnnounced: boolean): void
  /**
   * Whether the step may begin without an intent of its own: the line before it names it, and was written, under the fence
   * of the run, in this turn of the event loop. Values that the body asked for in between are on no line yet.
   */
  begins(place: Place): boolean
  /** The steps that began and have no line yet. */
  leftOpen(): LeftOpen
  /** Whether a worker that died may have begun this step so. */
  mayHaveBegun(place: Place): boolean
  /** Whether it may have begun any step of this branch so: then the run has passed the place before it. */
  mayHaveLeft(branch: string): boolean
}

interface AnnouncedOptions {
  readonly runtime: Runtime
  readonly followers: Followers
  readonly definition: string
  /** What was recorded, in order, where a worker died with the run; else nothing. */
  readonly doubted: readonly Entry[]
}

export function createAnnounced({ runtime, followers, definition, doubted }: AnnouncedOptions): Announced {
  const inDoubt = withoutLine(doubted)
  const open = new Set<string>()
  let last: Entry | null = null

  const lineBefore = ({ branch }: Place): Entry | null => (last?.branch === branch.path ? last : null)

  return {
    wrote(entry) {
      open.delete(entry.key)
      inDoubt.delete(entry.stepId)
      last = entry.state === 'succeeded' ? entry : null
      if (last !== null) runtime.soon(() => void (last = last === entry ? null : last))
    },
    came(place, mayBeAnnounced) {
      const line = lineBefore(place)
      const follows = mayBeAnnounced && place.values.length === 0
      if (line !== null) followers.learn(definition, line, follows ? place.stepId : null)
    },
    begins(place) {
      const begins = place.values.length === 0 && lineBefore(place)?.leadsTo === place.stepId
      if (begins) open.add(place.key)
      return begins
    },
    leftOpen: () => (open.size > 0 ? 'by_this_worker' : inDoubt.size > 0 ? 'by_an_earlier_worker' : 'by_none'),
    mayHaveBegun: ({ stepId }) => inDoubt.has(stepId),
    mayHaveLeft: (branch) => inDoubt.size > 0 && [...inDoubt].some((stepId) => isDirectlyIn(stepId, branch)),
  }
}

/** What lines announced, and what has no line behind them. */
function withoutLine(entries: readonly Entry[]): Set<string> {
  const announced = new Set<string>()
  for (const { stepId, leadsTo } of entries) {
    announced.delete(stepId)
    if (leadsTo !== null) announced.add(leadsTo)
  }
  return announced
}

function isDirectlyIn(stepId: string, branch: string): boolean {
  return pathOf(branch, stepId.slice(stepId.lastIndexOf('/') + 1)) === stepId
}
