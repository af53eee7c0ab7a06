import type { Bench } from './harness/bench.ts'
import { runBench } from './harness/bench.ts'
import { byTurns, type Goal, type Wanted } from './harness/compare.ts'
import { describeDisk } from './harness/machine.ts'
import { POOL_CLIENTS, type PostgresServer, withPostgres } from './harness/postgres.ts'
import { compareCommits } from './http-overhead/anatomy/against.ts'
import { showAnatomy } from './http-overhead/anatomy/main.ts'
import { adapters, EMPTY, type OverheadTask, type Work } from './http-overhead/task.ts'

/** A protected route (Fastify, memory store, small JSON) ÷ the same route bare, in the same framework. */
const PAIRS = 15
/** Of the comparisons that have no goal. */
const LOOK_PAIRS = 5
const CALLERS = 64
const SLICES = { count: 10, ms: 200 }
const SIDE = import.meta.resolve('./http-overhead/side.ts')
const transaction = {
  ours: 'claim, insert and outcome in one transaction',
  other: 'BEGIN, the same insert and COMMIT by hand',
}

await runBench('http-overhead', async (bench) => {
  const { anatomy, against } = bench.options
  if (anatomy) return against === null ? showAnatomy(bench) : compareCommits(bench, against)
  bench.note(`${CALLERS} keep-alive connections, callers that poll; server and callers in processes of their own`)
  const nowhere: Somewhere = (measure) => measure(EMPTY)
  await both(bench, 'empty handler', 'fastify', nowhere, { first: { atLeast: 0.65 }, replay: { atLeast: 0.8 } })
  await encryptedRecords(bench)
  await withPostgres(bench, async (server) => {
    bench.note(describeDisk())
    bench.note(`one prepared INSERT per request, pool of ${POOL_CLIENTS} on both sides`)
    const insert: Somewhere = (measure) => server.withDatabase((place) => measure({ kind: 'insert', place }))
    await both(bench, 'one insert', 'fastify', insert, { first: { atLeast: 0.9 }, replay: { atLeast: 1.5 } })
    await transactionAlone(bench, server, { atLeast: 0.85 })
    await transactionCrowd(bench, server, { atLeast: 0.9 })
  })
  for (const adapter of adapters)
    if (adapter !== 'fastify') await both(bench, `empty, ${adapter}`, adapter, nowhere, {})
})

type Somewhere = <T>(measure: (work: Work) => Promise<T>) => Promise<T>

function timeOf({ options }: Bench) {
  return options.quick
    ? { warmUpMs: 0, warmUpRequests: 3_000, measureMs: 700 }
    : { warmUpMs: 1_000, warmUpRequests: 15_000, measureMs: 2_500 }
}

async function both(
  bench: Bench,
  handler: string,
  adapter: OverheadTask['adapter'],
  somewhere: Somewhere,
  goals: Readonly<Partial<Record<OverheadTask['requests'], Goal>>>,
): Promise<void> {
  const measure = (requests: OverheadTask['requests'], isProtected: boolean) =>
    somewhere((work) => {
      const task: OverheadTask = {
        ...timeOf(bench),
        adapter,
        callers: CALLERS,
        requests,
        protected: isProtected,
        work,
      }
      return bench.side({ program: SIDE, task })
    })
  for (const requests of ['first', 'replay'] as const) {
    const goal = goals[requests]
    await bench.compare({
      name: `${handler}, ${requests}`,
      pairs: goal === undefined ? LOOK_PAIRS : PAIRS,
      ours: requests === 'first' ? 'a protected route, unique keys' : 'a protected route, keys that were used before',
      other: 'the same route, bare',
      measure: byTurns(
        () => measure(requests, true),
        () => measure(requests, false),
      ),
      wanted: wanted(goal),
    })
  }
}

/** What encryption costs, beside the same protected route in plain. */
async function encryptedRecords(bench: Bench): Promise<void> {
  for (const requests of ['first', 'replay'] as const) {
    const shared = { adapter: 'fastify', callers: CALLERS, requests, protected: true, work: EMPTY } as const
    const measure = (encrypted: boolean) =>
      bench.side({ program: SIDE, task: { ...timeOf(bench), ...shared, encrypted } satisfies OverheadTask })
    await bench.compare({
      name: `encrypted ÷ plain, ${requests}`,
      pairs: LOOK_PAIRS,
      ours: 'a protected route whose records are encrypted',
      other: 'the same route, its records in plain',
      measure: byTurns(
        () => measure(true),
        () => measure(false),
      ),
      wanted: wanted(undefined),
    })
  }
}

async function transactionCrowd(bench: Bench, server: PostgresServer, goal: Goal): Promise<void> {
  const measure = (isProtected: boolean) =>
    server.withDatabase((place) => {
      const work: Work = { kind: 'transaction', place }
      const task: OverheadTask = {
        ...timeOf(bench),
        warmUpRequests: 3_000,
        adapter: 'fastify',
        callers: CALLERS,
        requests: 'first',
        protected: isProtected,
        work,
      }
      return bench.side({ program: SIDE, task })
    })
  await bench.compare({
    name: `same transaction, ${CALLERS} callers`,
    pairs: PAIRS,
    ...transaction,
    measure: byTurns(
      () => measure(true),
      () => measure(false),
    ),
    wanted: wanted(goal),
  })
}

async function transactionAlone(bench: Bench, server: PostgresServer, goal: Goal): Promise<void> {
  const slices = bench.options.quick ? { count: 4, ms: 100 } : SLICES
  const task = {
    adapter: 'fastify',
    callers: 1,
    warmUpMs: 200,
    warmUpRequests: bench.options.quick ? 200 : 2_000,
    measureMs: 0,
    slices,
    requests: 'first',
  } as const
  const side = (isProtected: boolean, work: Work) => ({
    program: SIDE,
    task: { ...task, protected: isProtected, work } satisfies OverheadTask,
  })
  await bench.compare({
    name: 'same transaction, 1 caller',
    pairs: PAIRS,
    ...transaction,
    measure: (oursFirst) =>
      server.withDatabase((mine) =>
        server.withDatabase((theirs) => {
          const ours = side(true, { kind: 'transaction', place: mine })
          const other = side(false, { kind: 'transaction', place: theirs })
          return bench.sideBySide({ ours, other }, slices.count, oursFirst)
        }),
      ),
    wanted: wanted(goal),
  })
}

function wanted(goal: Goal | undefined): Wanted[] {
  return [
    { figure: 'requestsPerS', label: 'requests/s', of: 'ratio', ...(goal === undefined ? {} : { goal }) },
    { figure: 'p50Ms', label: 'median ms', of: 'ratio' },
    { figure: 'p99Ms', label: 'p99 ms', of: 'ratio' },
    { figure: 'serverCpuUs', label: 'server CPU µs per request', of: 'ratio' },
  ]
}
