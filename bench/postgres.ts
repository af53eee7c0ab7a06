import type { Bench } from './harness/bench.ts'
import { runBench } from './harness/bench.ts'
import { describeDisk } from './harness/machine.ts'
import type { PostgresServer } from './harness/postgres.ts'
import { POOL_CLIENTS, withPostgres } from './harness/postgres.ts'
import type { StoreGoals } from './harness/store-goals.ts'
import { compareCrowd, wantedOfStore } from './harness/store-goals.ts'

/** Ours ÷ one prepared insert and one prepared update per request: the same table, the same pool, the same durability. */
const PAIRS = 15
const SLICES = { count: 10, ms: 200 }

const ours = import.meta.resolve('./postgres/ours.ts')
const other = import.meta.resolve('./postgres/other.ts')
const labels = { ours: 'operation.run', other: 'a prepared insert and a prepared update' }

await runBench('postgres', async (bench) => {
  bench.note(describeDisk())
  await withPostgres(bench, async (server) => {
    bench.note(`pool of ${POOL_CLIENTS} on both sides`)
    await crowd(bench, server, 256, { throughput: { atLeast: 6 }, p99: { atMost: 1 } })
    await crowd(bench, server, 1_024, { throughput: { atLeast: 8 } })
    await alone(bench, server)
  })
})

async function crowd(bench: Bench, server: PostgresServer, callers: number, goals: StoreGoals): Promise<void> {
  const { options, side } = bench
  const time = options.quick ? { warmUpMs: 300, measureMs: 700 } : { warmUpMs: 1_000, measureMs: 3_000 }
  const measure = (program: string) =>
    server.withDatabase((place) => side({ program, task: { ...time, ...place, callers } }))
  const sides = { ours: () => measure(ours), other: () => measure(other) }
  await compareCrowd(bench, callers, { ...labels, pairs: PAIRS }, sides, goals)
}

async function alone({ options, sideBySide, compare }: Bench, server: PostgresServer): Promise<void> {
  const slices = options.quick ? { count: 4, ms: 100 } : SLICES
  const task = { callers: 1, warmUpMs: 500, measureMs: 0, slices }
  await compare({
    name: '1 caller',
    pairs: PAIRS,
    ...labels,
    measure: (oursFirst) =>
      server.withDatabase((mine) =>
        server.withDatabase((theirs) => {
          const sides = {
            ours: { program: ours, task: { ...task, ...mine } },
            other: { program: other, task: { ...task, ...theirs } },
          }
          return sideBySide(sides, slices.count, oursFirst)
        }),
      ),
    wanted: wantedOfStore({ throughput: { atLeast: 0.95 } }),
  })
}
