import type { Bench } from './harness/bench.ts'
import { runBench } from './harness/bench.ts'
import { describeDisk } from './harness/machine.ts'
import type { PostgresServer } from './harness/postgres.ts'
import { POOL_CLIENTS, withPostgres } from './harness/postgres.ts'

/** Ours ÷ one prepared insert and one prepared update per request: the same table, the same pool, the same durability. */
const PAIRS = 15
/** A lonely caller is at the mercy of the disk, which has moods: short rounds, and many of them. */
const PAIRS_ALONE = 31

await runBench('postgres', async (bench) => {
  bench.note(describeDisk())
  await withPostgres(bench, async (server) => {
    bench.note(`pool of ${POOL_CLIENTS} on both sides`)
    await compareAt(bench, server, 256, { atLeast: 4 }, { atMost: 1 })
    await compareAt(bench, server, 1, { atLeast: 0.9 }, undefined)
  })
})

async function compareAt(
  { options, side, compare }: Bench,
  server: PostgresServer,
  callers: number,
  throughput: { atLeast: number },
  p99: { atMost: number } | undefined,
): Promise<void> {
  const measureMs = options.quick ? 700 : callers === 1 ? 1_000 : 3_000
  const time = { warmUpMs: options.quick ? 300 : 1_000, measureMs }
  const measure = (program: string) =>
    server.withDatabase((place) => side({ program, task: { ...time, ...place, callers } }))
  await compare({
    name: callers === 1 ? '1 caller' : `${callers} callers`,
    pairs: callers === 1 ? PAIRS_ALONE : PAIRS,
    ours: { label: 'onceonly', measure: () => measure(import.meta.resolve('./postgres/ours.ts')) },
    other: { label: 'insert and update', measure: () => measure(import.meta.resolve('./postgres/other.ts')) },
    wanted: [
      { figure: 'requestsPerS', label: 'requests/s', of: 'ratio', goal: throughput },
      { figure: 'p50Ms', label: 'median ms', of: 'ratio' },
      { figure: 'p99Ms', label: 'p99 ms', of: 'ratio', ...(p99 === undefined ? {} : { goal: p99 }) },
      { figure: 'cpuUs', label: 'CPU µs per request', of: 'ratio' },
      { figure: 'serverCpuUs', label: 'server CPU µs per request', of: 'ratio' },
    ],
  })
}
