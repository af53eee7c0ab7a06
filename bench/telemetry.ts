import { runBench } from './harness/bench.ts'
import { byTurns } from './harness/compare.ts'
import { EMPTY, type OverheadTask } from './http-overhead/task.ts'

/** A protected route (Fastify, memory store, small JSON) with every event counted and timed ÷ without. */
const PAIRS = 15
const CALLERS = 64

await runBench('telemetry', async ({ options, side, compare, note }) => {
  note(
    `${CALLERS} keep-alive connections; server and callers in processes of their own; the meter of onceonly/telemetry`,
  )
  const time = options.quick
    ? { warmUpMs: 0, warmUpRequests: 3_000, measureMs: 700 }
    : { warmUpMs: 500, warmUpRequests: 8_000, measureMs: 1_500 }
  const measure = (requests: OverheadTask['requests'], telemetry: boolean) => {
    const task: OverheadTask = {
      ...time,
      callers: CALLERS,
      requests,
      adapter: 'fastify',
      protected: true,
      telemetry,
      work: EMPTY,
    }
    return side({ program: import.meta.resolve('./http-overhead/side.ts'), task })
  }
  for (const requests of ['first', 'replay'] as const) {
    await compare({
      name: requests === 'first' ? 'unique keys' : 'keys that were used before',
      pairs: PAIRS,
      ours: 'with telemetry',
      other: 'without',
      measure: byTurns(
        () => measure(requests, true),
        () => measure(requests, false),
      ),
      wanted: [
        { figure: 'requestsPerS', label: 'requests/s', of: 'ratio', goal: { atLeast: 0.95 } },
        { figure: 'p99Ms', label: 'p99 ms', of: 'ratio' },
        { figure: 'serverCpuUs', label: 'server CPU µs per request', of: 'ratio' },
      ],
    })
  }
})
