import type { Branch, Place } from './branch.ts'
import type { RunContext } from './context.ts'
import type { Entry, RunRow } from './entry.ts'
import { isOpen } from './entry.ts'
import { pathOf } from './key.ts'

/** The branches of clean-ups stand below this; no name that users give begins so. */
const CLEAN_UP = '$cancel'

/** What a body has declared for the case that its run is cancelled. */
export interface CleanUp {
  /** Where it was declared, so that its steps have the same keys whatever ran beside it. */
  readonly path: string
  readonly act: (run: RunContext) => Promise<unknown>
}

export function cleanUpPath(path: string): string {
  return pathOf(CLEAN_UP, path)
}

export function isCleanUp(branch: string): boolean {
  return branch.startsWith(`${CLEAN_UP}/`)
}

/**
 * Whether a run that was cancelled stops at this place: it follows its journal to where it stood, and begins nothing. A race
 * has its open steps in its branches.
 */
export function isStop(run: RunRow, { branch, kind, recorded }: Pick<Place, 'branch' | 'kind' | 'recorded'>): boolean {
  if (run.cancelledAt === null || isCleanUp(branch.path) || kind === 'race') return false
  if (recorded === null) return true
  return kind === 'sleep'
    ? !hasSlept(recorded, run.cancelledAt, isFollowed(branch))
    : isOpen(recorded.state) || recorded.state === 'abandoned'
}

function isFollowed(branch: Branch): boolean {
  return branch.recorded.length > branch.passed || (branch.ahead() ?? branch.behind()) !== undefined
}

/**
 * A sleep has no line for its end: it had passed when something came behind it, or when it was over before the cancel, unless
 * its branch lost a race meanwhile.
 */
export function hasSlept({ dueAt, state }: Entry, cancelledAt: number, isFollowed: boolean): boolean {
  return isFollowed || (state !== 'abandoned' && (dueAt ?? 0) <= cancelledAt)
}
