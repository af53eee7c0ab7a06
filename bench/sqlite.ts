import type { Bench } from './harness/bench.ts'
import { runBench } from './harness/bench.ts'
import { createFolder } from './harness/folder.ts'
import { describeDisk } from './harness/machine.ts'

/** Ours ÷ one commit per write: `synchronous=FULL`, WAL, prepared statements, the same table. */
const PAIRS = 15
/** A lonely caller is at the mercy of the disk, which has moods: short rounds, and many of them. */
const PAIRS_ALONE = 31

await runBench('sqlite', async (bench) => {
  bench.note(describeDisk())
  await compareAt(bench, 64, { atLeast: 12 }, { atMost: 1 })
  await compareAt(bench, 1, { atLeast: 0.9 }, undefined)
})

async function compareAt(
  { options, side, compare }: Bench,
  callers: number,
  throughput: { atLeast: number },
  p99: { atMost: number } | undefined,
): Promise<void> {
  const measureMs = options.quick ? 500 : callers === 1 ? 1_000 : 2_000
  const time = { warmUpMs: options.quick ? 200 : 500, measureMs }
  const measure = async (program: string) => {
    using folder = createFolder()
    return await side({ program, task: { ...time, callers, path: folder.file('records.db') } })
  }
  await compare({
    name: callers === 1 ? '1 caller' : `${callers} callers`,
    pairs: callers === 1 ? PAIRS_ALONE : PAIRS,
    ours: { label: 'onceonly', measure: () => measure(import.meta.resolve('./sqlite/ours.ts')) },
    other: { label: 'one commit per write', measure: () => measure(import.meta.resolve('./sqlite/other.ts')) },
    wanted: [
      { figure: 'requestsPerS', label: 'requests/s', of: 'ratio', goal: throughput },
      { figure: 'p50Ms', label: 'median ms', of: 'ratio' },
      { figure: 'p99Ms', label: 'p99 ms', of: 'ratio', ...(p99 === undefined ? {} : { goal: p99 }) },
      { figure: 'cpuUs', label: 'CPU µs per request', of: 'ratio' },
    ],
  })
}
