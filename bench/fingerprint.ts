import { runBench } from './harness/bench.ts'
import { byTurns } from './harness/compare.ts'
import { installPeers, peerVersion } from './harness/peers.ts'

/** The lossless fingerprint of a JSON body of 1 KB, from bytes ÷ `JSON.parse` + `canonicalize` + SHA-256. */
const PAIRS = 15
const GOAL = 2

await runBench('fingerprint', async ({ options, progress, side, compare }) => {
  await installPeers(progress)
  const task = options.quick ? { warmUpMs: 200, measureMs: 200 } : { warmUpMs: 500, measureMs: 1_000 }
  const ours = { program: import.meta.resolve('./fingerprint/ours.ts'), task }
  const other = { program: import.meta.resolve('./fingerprint/other.ts'), task }
  await compare({
    name: '1 KB of JSON',
    pairs: PAIRS,
    ours: 'fingerprint of the bytes',
    other: `JSON.parse + ${peerVersion('canonicalize')} + SHA-256 of node:crypto`,
    measure: byTurns(
      () => side(ours),
      () => side(other),
    ),
    wanted: [
      { figure: 'perS', label: 'fingerprints/s', of: 'ratio', goal: { atLeast: GOAL } },
      { figure: 'cpuUs', label: 'CPU µs each', of: 'ratio' },
    ],
  })
})
