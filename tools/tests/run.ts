import { availableParallelism } from 'node:os'
import { isUnit } from './discover.ts'
import { UNIT_PROCESSES } from './limits.ts'
import { longestFirst } from './order.ts'
import type { Counts, Results, Timed } from './results.ts'
import { runFile } from './run-file.ts'
import { runUnits } from './run-units.ts'

/** Two more than there are cores, because a test waits for a server or a timer a good part of its life. */
const lanes = Math.min(4, availableParallelism() + 2)

type Work = (interrupted: AbortSignal) => Promise<Results & Timed>

export interface Ran extends Counts {
  readonly times: Timed[]
}

export async function runTests(files: readonly string[], interrupted: AbortSignal): Promise<Ran> {
  const total: Ran = { passed: 0, failed: 0, skipped: 0, times: [] }
  const waiting = works(files).values()
  await Promise.all(
    Array.from({ length: lanes }, async () => {
      for (const work of waiting) {
        if (interrupted.aborted) return
        const { passed, failed, skipped, what, tookMs } = await work(interrupted)
        total.times.push({ what, tookMs })
        total.passed += passed
        total.failed += failed
        total.skipped += skipped
      }
    }),
  )
  return total
}

function works(files: readonly string[]): Work[] {
  const units = files.filter(isUnit)
  const shares = Array.from({ length: UNIT_PROCESSES }, (_, share) =>
    units.filter((_file, index) => index % UNIT_PROCESSES === share),
  ).filter((share) => share.length > 0)
  return [
    ...shares.map(
      (share): Work =>
        (interrupted) =>
          runUnits(share, interrupted),
    ),
    ...longestFirst(files.filter((file) => !isUnit(file))).map(
      (file): Work =>
        (interrupted) =>
          runFile(file, interrupted),
    ),
  ]
}
