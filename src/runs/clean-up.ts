import type { Branch } from './branch.ts'
import { cleanUpPath } from './clean-up-path.ts'
import type { RunContext } from './context.ts'
import type { End } from './determinism.ts'
import type { Execution } from './execution.ts'
import { keepLast } from './fork.ts'

/**
 * A run that was cancelled: its body is followed as far as it came, so that its clean-ups have what they need; then they run
 * one after the other, the last declared first. Their steps are recorded like any other, so that a crash repeats none.
 */
export async function cleanUp(
  execution: Execution,
  body: () => Promise<unknown>,
  inside: (branch: Branch) => RunContext,
): Promise<End> {
  try {
    // What the body returns or throws does not count any more.
    await Promise.race([body().catch(() => undefined), execution.stopped])
    execution.beginCleanUp()
    for (const { path, act } of execution.declarations.cleanUps.toReversed()) {
      const branch = execution.branch(cleanUpPath(path), execution.lost)
      await keepLast(execution, branch, () => act(inside(branch)))
    }
    return { kind: 'cleaned' }
  } catch (error) {
    return { kind: 'threw', error }
  }
}
