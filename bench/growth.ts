import { copyFileSync } from 'node:fs'
import type { Bench } from './harness/bench.ts'
import { runBench } from './harness/bench.ts'
import { byTurns, type Wanted } from './harness/compare.ts'
import type { Figures } from './harness/figures.ts'
import { createFolder } from './harness/folder.ts'
import { describeDisk } from './harness/machine.ts'
import type { PostgresPlace } from './harness/postgres.ts'
import { withPostgres } from './harness/postgres.ts'

/** Twenty million records ÷ ten thousand: the time of a claim, also while sweeping; and the bytes of a settled record. */
const LARGE = 20_000_000
const LARGE_QUICK = 200_000
const SMALL = 10_000
const PAIRS = 9
const CALLERS = 16

const latencies: readonly Wanted[] = [
  { figure: 'p50Ms', label: 'claim, median ms', of: 'ratio', goal: { atMost: 1.3 } },
  { figure: 'p99Ms', label: 'claim, p99 ms', of: 'ratio', goal: { atMost: 1.5 } },
  { figure: 'requestsPerS', label: 'claims/s', of: 'ratio' },
  { figure: 'cpuUs', label: 'CPU µs per claim', of: 'ratio' },
  { figure: 'serverCpuUs', label: 'server CPU µs per claim', of: 'ratio' },
]

await runBench('growth', async (bench) => {
  const { only } = bench.options
  bench.note(describeDisk())
  await memory(bench)
  if (only === null || only.startsWith('sqlite')) await sqlite(bench)
  if (only === null || only.startsWith('postgres')) await postgres(bench)
})

async function memory({ options, side, compare }: Bench): Promise<void> {
  const program = import.meta.resolve('./growth/memory.ts')
  const records = options.quick ? 20_000 : 200_000
  await compare({
    name: 'memory store',
    pairs: PAIRS,
    ours: 'memory of a settled record with an outcome of 200 bytes',
    other: null,
    measure: async () => ({ ours: await side({ program, task: { records } }), other: null }),
    wanted: [
      { figure: 'bytesPerRecord', label: 'bytes per settled record', of: 'ours', goal: { atMost: 800 } },
      { figure: 'cpuUs', label: 'CPU µs per request', of: 'ours' },
    ],
  })
}

/** The large store is filled once and used by every round, which adds a thousandth; the small one is new each time. */
async function sqlite(bench: Bench): Promise<void> {
  using folder = createFolder()
  const large = folder.file('large.db')
  const small = folder.file('small.db')
  const copy = folder.file('copy.db')
  const fill = import.meta.resolve('./growth/fill-sqlite.ts')
  const program = import.meta.resolve('./growth/claims-sqlite.ts')
  bench.progress(`filling SQLite with ${largeSize(bench)} records …`)
  await bench.side({ program: fill, task: { path: large, records: largeSize(bench) } })
  await bench.side({ program: fill, task: { path: small, records: SMALL } })
  await compareSizes(bench, 'sqlite', {
    large: (task) => bench.side({ program, task: { ...task, path: large } }),
    small: (task) => {
      copyFileSync(small, copy)
      return bench.side({ program, task: { ...task, path: copy } })
    },
  })
}

async function postgres(bench: Bench): Promise<void> {
  const program = import.meta.resolve('./growth/claims-postgres.ts')
  const fill = (place: PostgresPlace, records: number) =>
    bench.side({ program: import.meta.resolve('./growth/fill-postgres.ts'), task: { ...place, records } })
  await withPostgres(bench, (server) =>
    server.withDatabase(async (place) => {
      bench.progress(`filling PostgreSQL with ${largeSize(bench)} records …`)
      await fill(place, largeSize(bench))
      await compareSizes(bench, 'postgres', {
        large: async (task) => {
          await server.checkpoint()
          return await bench.side({ program, task: { ...task, ...place } })
        },
        small: (task) =>
          server.withDatabase(async (own) => {
            await fill(own, SMALL)
            return await bench.side({ program, task: { ...task, ...own } })
          }),
      })
    }),
  )
}

function largeSize({ options }: Bench): number {
  return options.records ?? (options.quick ? LARGE_QUICK : LARGE)
}

interface Sizes {
  large(task: object): Promise<Figures>
  small(task: object): Promise<Figures>
}

async function compareSizes(bench: Bench, store: string, { large, small }: Sizes): Promise<void> {
  const measureMs = bench.options.quick ? 1_000 : 5_000
  let rounds = 0
  for (const sweeping of [false, true]) {
    const task = () => ({
      callers: CALLERS,
      warmUpMs: 300,
      measureMs,
      mostRequests: 10_000,
      sweeping,
      round: `round-${rounds++}`,
    })
    await bench.compare({
      name: sweeping ? `${store}, sweeping` : store,
      pairs: PAIRS,
      ours: `claims with ${largeSize(bench)} records`,
      other: `with ${SMALL}`,
      measure: byTurns(
        () => large(task()),
        () => small(task()),
      ),
      wanted: [...latencies, ...(sweeping ? [{ figure: 'swept', label: 'records swept', of: 'ours' } as const] : [])],
    })
  }
}
