import type { Bench } from './harness/bench.ts'
import { runBench } from './harness/bench.ts'
import { byTurns, type Goal } from './harness/compare.ts'
import { POOL_CLIENTS, type PostgresServer, withPostgres } from './harness/postgres.ts'
import type { OverheadTask } from './http-overhead/task.ts'

/** Fastify with our adapter (memory store, small JSON) ÷ bare Fastify, the same application otherwise. */
const PAIRS = 15
const CALLERS = 64

await runBench('http-overhead', async (bench) => {
  bench.note(`${CALLERS} keep-alive connections; server and callers in processes of their own`)
  const nowhere: Somewhere = (measure) => measure(null)
  await both(bench, 'empty handler', nowhere, { first: { atLeast: 0.65 }, replay: { atLeast: 0.8 } })
  await withPostgres(bench, async (server) => {
    bench.note(`one prepared INSERT per request, pool of ${POOL_CLIENTS} on both sides`)
    await both(bench, 'one insert', inDatabase(server), { first: { atLeast: 0.9 }, replay: { atLeast: 1.5 } })
  })
})

type Somewhere = <T>(measure: (place: OverheadTask['place']) => Promise<T>) => Promise<T>

function inDatabase(server: PostgresServer): Somewhere {
  return (measure) => server.withDatabase(measure)
}

async function both(
  { options, side, compare }: Bench,
  handler: string,
  somewhere: Somewhere,
  goals: Readonly<Record<OverheadTask['requests'], Goal>>,
): Promise<void> {
  const time = options.quick
    ? { warmUpMs: 0, warmUpRequests: 3_000, measureMs: 700 }
    : { warmUpMs: 1_000, warmUpRequests: 15_000, measureMs: 2_500 }
  const measure = (requests: OverheadTask['requests'], isProtected: boolean) =>
    somewhere((place) => {
      const task: OverheadTask = { ...time, callers: CALLERS, requests, protected: isProtected, place }
      return side({ program: import.meta.resolve('./http-overhead/side.ts'), task })
    })
  for (const requests of ['first', 'replay'] as const) {
    await compare({
      name: `${handler}, ${requests}`,
      pairs: PAIRS,
      ours: requests === 'first' ? 'a protected route, unique keys' : 'a protected route, keys that were used before',
      other: 'the same route, bare',
      measure: byTurns(
        () => measure(requests, true),
        () => measure(requests, false),
      ),
      wanted: [
        { figure: 'requestsPerS', label: 'requests/s', of: 'ratio', goal: goals[requests] },
        { figure: 'p50Ms', label: 'median ms', of: 'ratio' },
        { figure: 'p99Ms', label: 'p99 ms', of: 'ratio' },
        { figure: 'serverCpuUs', label: 'server CPU µs per request', of: 'ratio' },
        { figure: 'cpuUs', label: 'callers’ CPU µs per request', of: 'ratio' },
      ],
    })
  }
}
