import { copyFileSync } from 'node:fs'
import type { Bench } from './harness/bench.ts'
import { runBench } from './harness/bench.ts'
import type { Wanted } from './harness/compare.ts'
import { createFolder } from './harness/folder.ts'
import { describeDisk } from './harness/machine.ts'

/** Five million records ÷ ten thousand: the time of a claim, also while sweeping; and the bytes of a settled record. */
const LARGE = 5_000_000
const LARGE_QUICK = 200_000
const SMALL = 10_000
const PAIRS = 5
const CALLERS = 16

const latencies: readonly Wanted[] = [
  { figure: 'p50Ms', label: 'claim, median ms', of: 'ratio', goal: { atMost: 1.5 } },
  { figure: 'p99Ms', label: 'claim, p99 ms', of: 'ratio', goal: { atMost: 2 } },
  { figure: 'requestsPerS', label: 'claims/s', of: 'ratio' },
  { figure: 'cpuUs', label: 'CPU µs per claim', of: 'ratio' },
  { figure: 'swept', label: 'records swept', of: 'ours' },
]

await runBench('growth', async (bench) => {
  bench.note(describeDisk())
  await memory(bench)
  await sqlite(bench)
})

async function memory({ options, side, compare }: Bench): Promise<void> {
  const program = import.meta.resolve('./growth/memory.ts')
  const records = options.quick ? 20_000 : 200_000
  await compare({
    name: 'memory store',
    pairs: PAIRS,
    ours: { label: 'onceonly', measure: () => side({ program, task: { records } }) },
    other: null,
    wanted: [
      { figure: 'bytesPerRecord', label: 'bytes per settled record', of: 'ours', goal: { atMost: 1_000 } },
      { figure: 'cpuUs', label: 'CPU µs per request', of: 'ours' },
    ],
  })
}

async function sqlite({ options, side, compare, progress }: Bench): Promise<void> {
  if (options.only !== null && !'sqlite'.includes(options.only)) return
  using folder = createFolder()
  const records = options.records ?? (options.quick ? LARGE_QUICK : LARGE)
  const large = folder.file('large.db')
  const small = folder.file('small.db')
  progress(`filling SQLite with ${records} records …`)
  const fill = import.meta.resolve('./growth/fill-sqlite.ts')
  await side({ program: fill, task: { path: large, records } })
  await side({ program: fill, task: { path: small, records: SMALL } })
  let rounds = 0
  const measure = async (from: string, sweeping: boolean) => {
    const path = from === small ? folder.file('copy.db') : large
    if (from === small) copyFileSync(small, path)
    const time = { warmUpMs: 300, measureMs: options.quick ? 1_000 : 5_000, mostRequests: 10_000 }
    const task = { ...time, callers: CALLERS, sweeping, round: `round-${rounds++}`, path }
    return await side({ program: import.meta.resolve('./growth/claims-sqlite.ts'), task })
  }
  for (const sweeping of [false, true]) {
    await compare({
      name: sweeping ? 'sqlite, sweeping' : 'sqlite',
      pairs: PAIRS,
      ours: { label: `${records} records`, measure: () => measure(large, sweeping) },
      other: { label: `${SMALL} records`, measure: () => measure(small, sweeping) },
      wanted: latencies,
    })
  }
}
