import { isWithin } from './branch.ts'
import type { CleanUp } from './clean-up-path.ts'
import { isCleanUp } from './clean-up-path.ts'
import type { Entry } from './entry.ts'

/** How often each step was executed, at some moment. */
export type Ticks = Readonly<Record<string, number>>

/** The clean-ups of a run. Only the body has the functions: what the journal has of them must be declared once more. */
export interface Declarations {
  /** In the order in which the body declared them. */
  readonly cleanUps: readonly CleanUp[]
  /** The body has declared one, again or for the first time. */
  add(key: string, cleanUp: CleanUp): void
  /** Whether one stands below a path that the body has not declared again, and that is older than these ticks. */
  areOwedBelow(path: string, before: Ticks): boolean
}

export function createDeclarations(entries: readonly Entry[]): Declarations {
  const cleanUps: CleanUp[] = []
  const owed = new Map(entries.filter(isDeclaration).map((entry) => [entry.key, entry]))

  return {
    cleanUps,
    areOwedBelow: (path, before) =>
      [...owed.values()].some(({ branch, stepId, tick }) => isWithin(branch, path) && tick < (before[stepId] ?? 0)),
    add(key, cleanUp) {
      cleanUps.push(cleanUp)
      owed.delete(key)
    },
  }
}

function isDeclaration({ kind, branch }: Entry): boolean {
  return kind === 'clean-up' && !isCleanUp(branch)
}
