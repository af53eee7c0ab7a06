import type { Bench } from './harness/bench.ts'
import { runBench } from './harness/bench.ts'
import { byTurns } from './harness/compare.ts'
import { describeDisk } from './harness/machine.ts'
import type { Fsync, RedisServer } from './harness/redis.ts'
import { withRedis } from './harness/redis.ts'
import { wantedOfStore } from './harness/store-goals.ts'

/** Ours ÷ pipelined `SET NX` and `SET` by hand: the same server, the same persistence. */
const PAIRS = 15
const SLICES = { count: 10, ms: 200 }

const ours = import.meta.resolve('./redis/ours.ts')
const other = import.meta.resolve('./redis/other.ts')
const labels = { ours: 'operation.run', other: 'SET NX and SET, pipelined' }

await runBench('redis', async (bench) => {
  bench.note(describeDisk())
  await withRedis(bench, async (server) => {
    for (const fsync of ['everysec', 'always'] as const) {
      await crowd(bench, server, fsync, 256)
      await alone(bench, server, fsync)
    }
  })
})

async function crowd({ options, side, compare }: Bench, server: RedisServer, fsync: Fsync, callers: number) {
  const time = options.quick ? { warmUpMs: 300, measureMs: 700 } : { warmUpMs: 1_000, measureMs: 2_000 }
  const measure = (program: string) =>
    server.withEmpty(fsync, (place) => side({ program, task: { ...time, ...place, callers, prefix: 'bench' } }))
  await compare({
    name: `${callers} callers, fsync ${fsync}`,
    pairs: PAIRS,
    ...labels,
    measure: byTurns(
      () => measure(ours),
      () => measure(other),
    ),
    wanted: wantedOfStore({ throughput: { atLeast: 0.8 } }),
  })
}

async function alone({ options, sideBySide, compare }: Bench, server: RedisServer, fsync: Fsync) {
  const slices = options.quick ? { count: 4, ms: 100 } : SLICES
  const task = { callers: 1, warmUpMs: 500, measureMs: 0, slices }
  await compare({
    name: `1 caller, fsync ${fsync}`,
    pairs: PAIRS,
    ...labels,
    measure: (oursFirst) =>
      server.withEmpty(fsync, (place) => {
        const sides = {
          ours: { program: ours, task: { ...task, ...place, prefix: 'ours' } },
          other: { program: other, task: { ...task, ...place, prefix: 'other' } },
        }
        return sideBySide(sides, slices.count, oursFirst)
      }),
    wanted: wantedOfStore({ throughput: { atLeast: 0.85 } }),
  })
}
