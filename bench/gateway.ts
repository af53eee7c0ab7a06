import type { GatewayTask, PeerName, ProxyTask } from './gateway/task.ts'
import { peers } from './gateway/task.ts'
import type { Bench } from './harness/bench.ts'
import { runBench } from './harness/bench.ts'
import { byTurns } from './harness/compare.ts'
import { createFolder } from './harness/folder.ts'
import { describeDisk } from './harness/machine.ts'
import { installPeers, peerVersion } from './harness/peers.ts'

/** Our gateway ÷ the fastest plain proxies that install, in front of the same service. */
const PAIRS = 15
const CALLERS = 64

/** A peer without bounds on time and size has no goal where something is recorded, too. */
const goals: Readonly<Record<PeerName, { readonly get: number; readonly post: number | null }>> = {
  httpxy: { get: 1, post: 0.75 },
  'fast-proxy': { get: 0.8, post: null },
}

await runBench('gateway', async (bench) => {
  await installPeers(bench.progress)
  bench.note(describeDisk())
  bench.note(
    `${peers.map(peerVersion).join(', ')}; ${CALLERS} keep-alive connections; callers, proxy and service apart`,
  )
  for (const peer of peers) {
    await against(bench, peer, 'pass-through GET', 'GET', goals[peer].get)
    await against(bench, peer, 'protected POST, SQLite', 'POST', goals[peer].post)
  }
})

async function against(
  { options, side, compare }: Bench,
  peer: PeerName,
  what: string,
  method: GatewayTask['method'],
  atLeast: number | null,
): Promise<void> {
  const time = options.quick
    ? { warmUpMs: 0, warmUpRequests: 1_000, measureMs: 700 }
    : { warmUpMs: 1_000, warmUpRequests: 10_000, measureMs: 2_500 }
  const program = import.meta.resolve('./gateway/side.ts')
  const measure = (proxy: ProxyTask) =>
    side({ program, task: { ...time, callers: CALLERS, method, proxy } satisfies GatewayTask })
  const ours = async () => {
    using folder = createFolder()
    return await measure({ kind: 'ours', path: folder.file('gateway.db') })
  }
  await compare({
    name: `${what} ÷ ${peer}`,
    pairs: PAIRS,
    ours: method === 'GET' ? 'a GET through the gateway' : 'a POST with a key of its own, recorded in SQLite',
    other: `the same through ${peer}, which records nothing`,
    measure: byTurns(ours, () => measure({ kind: 'peer', peer })),
    wanted: [
      { figure: 'requestsPerS', label: 'requests/s', of: 'ratio', ...(atLeast === null ? {} : { goal: { atLeast } }) },
      { figure: 'p50Ms', label: 'median ms', of: 'ratio' },
      { figure: 'p99Ms', label: 'p99 ms', of: 'ratio' },
      { figure: 'serverCpuUs', label: 'proxy CPU µs per request', of: 'ratio' },
    ],
  })
}
