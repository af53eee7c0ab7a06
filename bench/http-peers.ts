import type { Bench } from './harness/bench.ts'
import { runBench } from './harness/bench.ts'
import { byTurns, type Goal } from './harness/compare.ts'
import { installPeers, peerVersion } from './harness/peers.ts'
import { withRedis } from './harness/redis.ts'
import type { Peer, PeerTask } from './http-peers/task.ts'

/** Ours ÷ each of the packages on npm that do something like it: in one process, on Redis, and behind Express. */
const PAIRS = 15
const CALLERS = 64

const packages: Readonly<Record<Exclude<Peer, 'ours'>, string>> = {
  'node-idempotency': '@node-idempotency/core',
  powertools: '@aws-lambda-powertools/idempotency',
  'express-idempotency': 'express-idempotency',
}

await runBench('http-peers', async (bench) => {
  await installPeers(bench.progress)
  const library = import.meta.resolve('./http-peers/library.ts')
  const http = import.meta.resolve('./http-peers/http.ts')
  const inMemory: Somewhere = (measure) => measure(null)
  for (const peer of ['node-idempotency', 'powertools'] as const) {
    await against(bench, { where: 'library, memory', peer, program: library, goal: { atLeast: 1.3 } }, inMemory)
  }
  await against(
    bench,
    { where: 'Express', peer: 'express-idempotency', program: http, goal: { atLeast: 1.2 } },
    inMemory,
  )
  await withRedis(bench, async (server) => {
    const inRedis: Somewhere = (measure) => server.withEmpty('everysec', measure)
    for (const peer of ['node-idempotency', 'powertools'] as const) {
      await against(bench, { where: 'library, Redis', peer, program: library, goal: { atLeast: 1.2 } }, inRedis)
    }
  })
})

type Somewhere = <T>(measure: (place: PeerTask['place']) => Promise<T>) => Promise<T>

interface Match {
  readonly where: string
  readonly peer: Exclude<Peer, 'ours'>
  readonly program: string
  readonly goal: Goal
}

async function against({ options, side, compare }: Bench, { where, peer, program, goal }: Match, somewhere: Somewhere) {
  const time = options.quick
    ? { warmUpMs: 0, warmUpRequests: 2_000, measureMs: 700 }
    : { warmUpMs: 1_000, warmUpRequests: 10_000, measureMs: 2_000 }
  const measure = (whose: Peer) =>
    somewhere((place) => {
      const task: PeerTask = { ...time, callers: CALLERS, peer: whose, place }
      return side({ program, task })
    })
  await compare({
    name: `${where}, ${peer}`,
    pairs: PAIRS,
    ours: 'onceonly',
    other: peerVersion(packages[peer]),
    measure: byTurns(
      () => measure('ours'),
      () => measure(peer),
    ),
    wanted: [
      { figure: 'requestsPerS', label: 'requests/s', of: 'ratio', goal },
      { figure: 'p50Ms', label: 'median ms', of: 'ratio' },
      { figure: 'p99Ms', label: 'p99 ms', of: 'ratio' },
      { figure: 'cpuUs', label: 'CPU µs per request', of: 'ratio' },
      { figure: 'serverCpuUs', label: 'server CPU µs per request', of: 'ratio' },
    ],
  })
}
