import type { Bench } from './harness/bench.ts'
import { runBench } from './harness/bench.ts'
import { createFolder } from './harness/folder.ts'
import { describeDisk } from './harness/machine.ts'
import type { StoreGoals } from './harness/store-goals.ts'
import { compareCrowd, wantedOfStore } from './harness/store-goals.ts'

/** Ours ÷ one commit per write: `synchronous=FULL`, WAL, prepared statements, the same table. */
const PAIRS = 15
const SLICES = { count: 10, ms: 200 }

const ours = import.meta.resolve('./sqlite/ours.ts')
const other = import.meta.resolve('./sqlite/other.ts')
const labels = { ours: 'operation.run', other: 'insert and update by hand, one commit each' }

await runBench('sqlite', async (bench) => {
  bench.note(describeDisk())
  await crowd(bench, 64, { throughput: { atLeast: 10 }, p99: { atMost: 1 } })
  await crowd(bench, 256, { throughput: { atLeast: 20 } })
  await alone(bench)
})

async function crowd(bench: Bench, callers: number, goals: StoreGoals): Promise<void> {
  const { options, side } = bench
  const time = options.quick ? { warmUpMs: 200, measureMs: 500 } : { warmUpMs: 500, measureMs: 2_000 }
  const measure = async (program: string) => {
    using folder = createFolder()
    return await side({ program, task: { ...time, callers, path: folder.file('records.db') } })
  }
  const sides = { ours: () => measure(ours), other: () => measure(other) }
  await compareCrowd(bench, callers, { ...labels, pairs: PAIRS }, sides, goals)
}

async function alone({ options, sideBySide, compare }: Bench): Promise<void> {
  const slices = options.quick ? { count: 4, ms: 100 } : SLICES
  const task = { callers: 1, warmUpMs: 200, measureMs: 0, slices }
  await compare({
    name: '1 caller',
    pairs: PAIRS,
    ...labels,
    measure: async (oursFirst) => {
      using folder = createFolder()
      const sides = {
        ours: { program: ours, task: { ...task, path: folder.file('ours.db') } },
        other: { program: other, task: { ...task, path: folder.file('other.db') } },
      }
      return await sideBySide(sides, slices.count, oursFirst)
    },
    wanted: wantedOfStore({ throughput: { atLeast: 0.9 } }),
  })
}
