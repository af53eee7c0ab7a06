import { isOnePath } from './branch.ts'
import type { Entry, RunRow } from './entry.ts'

/**
 * What a worker that died may have done without recording it. It stood somewhere behind what is recorded: so a step that
 * comes first behind that may have been sent already, and whatever comes after something that we recorded ourselves
 * cannot have been.
 */
export interface Doubt {
  /** Since when something of this branch may have happened that is not recorded; null when nothing can have. */
  since(branch: string): number | null
  /** We have recorded something in this branch. */
  wrote(branch: string): void
}

export function createDoubt({ takenBefore }: RunRow, entries: readonly Entry[]): Doubt {
  const written = new Set<string>()
  return {
    since(branch) {
      if (takenBefore === null || [...written].some((each) => isOnePath(each, branch))) return null
      // Parallel branches say nothing about it: only entries before it, or below it, do.
      const before = entries.filter((entry) => isOnePath(entry.branch, branch))
      return before.reduce((last, { at }) => Math.max(last, at), takenBefore)
    },
    wrote: (branch) => void written.add(branch),
  }
}
