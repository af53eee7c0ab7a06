import { availableParallelism } from 'node:os'
import { longestFirst } from './order.ts'
import { type Counts, runFile } from './run-file.ts'

/** One more than there are cores, because a test waits for a server or a timer a good part of its life. */
const lanes = Math.min(4, availableParallelism() + 1)

export async function runTests(files: readonly string[], interrupted: AbortSignal): Promise<Counts> {
  const total: Counts = { passed: 0, failed: 0, skipped: 0 }
  const waiting = longestFirst(files).values()
  await Promise.all(
    Array.from({ length: lanes }, async () => {
      for (const file of waiting) {
        if (interrupted.aborted) return
        const { passed, failed, skipped } = await runFile(file, interrupted)
        total.passed += passed
        total.failed += failed
        total.skipped += skipped
      }
    }),
  )
  return total
}
