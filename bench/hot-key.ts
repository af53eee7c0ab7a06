import { runBench } from './harness/bench.ts'
import { byTurns } from './harness/compare.ts'
import { POOL_CLIENTS, withPostgres } from './harness/postgres.ts'

/** Replays of one settled key ÷ a handler that reads the row by its primary key; and what the store is asked meanwhile. */
const PAIRS = 15
const CALLERS = 256

await runBench('hot-key', async (bench) => {
  const { options, note, side, compare } = bench
  // Long enough that the cache of a second is renewed several times.
  const time = options.quick ? { warmUpMs: 500, measureMs: 2_000 } : { warmUpMs: 500, measureMs: 4_000 }
  await withPostgres(bench, async (server) => {
    note(`pool of ${POOL_CLIENTS} on both sides; every statement of the process counts, upkeep and tallies included`)
    const measure = (program: string) =>
      server.withDatabase((place) => side({ program, task: { ...time, ...place, callers: CALLERS } }))
    await compare({
      name: `${CALLERS} callers`,
      pairs: PAIRS,
      ours: 'replays of one settled key',
      other: 'a handler with one SELECT by the primary key',
      measure: byTurns(
        () => measure(import.meta.resolve('./hot-key/ours.ts')),
        () => measure(import.meta.resolve('./hot-key/other.ts')),
      ),
      wanted: [
        { figure: 'requestsPerS', label: 'replays/s', of: 'ratio', goal: { atLeast: 2 } },
        { figure: 'statementsPerS', label: 'statements/s', of: 'ours', goal: { atMost: 2 } },
        { figure: 'p50Ms', label: 'median ms', of: 'ratio' },
        { figure: 'p99Ms', label: 'p99 ms', of: 'ratio' },
        { figure: 'cpuUs', label: 'CPU µs per replay', of: 'ratio' },
        { figure: 'serverCpuUs', label: 'server CPU µs per replay', of: 'ratio' },
      ],
    })
  })
})
