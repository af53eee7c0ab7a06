import { runBench } from './harness/bench.ts'
import { byTurns } from './harness/compare.ts'
import { describeDisk } from './harness/machine.ts'
import { installPeers, peerVersion } from './harness/peers.ts'
import type { StreamsTask } from './streams/task.ts'
import { WINDOW } from './streams/task.ts'

/** Ordered acknowledged durable sends of one person ÷ (window ÷ round trip), and ÷ Socket.IO with `retries`. */
const PAIRS = 5
const CUTS = 0.02

const ours = import.meta.resolve('./streams/ours.ts')
const peer = import.meta.resolve('./streams/socket-io.ts')

await runBench('streams', async (bench) => {
  await installPeers(bench.progress)
  bench.note(describeDisk())
  bench.note(
    `${peerVersion('socket.io')}, \`retries\`; window of ${WINDOW}; a round trip is cut with a chance of ${CUTS}`,
  )
  for (const roundTripMs of [0, 100, 500]) {
    const measureMs = (bench.options.quick ? 2_000 : 8_000) + 4 * roundTripMs
    const task: StreamsTask = { roundTripMs, measureMs, cuts: CUTS }
    await bench.compare({
      name: `${roundTripMs} ms round trip`,
      pairs: PAIRS,
      ours: 'createStreamClient',
      other: 'Socket.IO',
      measure: byTurns(
        () => bench.side({ program: ours, task }),
        () => bench.side({ program: peer, task }),
      ),
      wanted: [
        { figure: 'sendsPerS', label: 'sends/s', of: 'ratio', ...(roundTripMs === 0 ? {} : { goal: { atLeast: 20 } }) },
        { figure: 'ofWindow', label: 'of window ÷ round trip', of: 'ours', goal: { atLeast: 0.8 } },
        { figure: 'metadataBytes', label: 'metadata bytes per message', of: 'ours', goal: { atMost: 20 } },
      ],
    })
  }
})
