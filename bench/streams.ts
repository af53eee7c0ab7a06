import { runBench } from './harness/bench.ts'
import { byTurns } from './harness/compare.ts'
import { describeDisk } from './harness/machine.ts'
import { installPeers, peerVersion } from './harness/peers.ts'
import type { BusyRoomTask, ClocksTask, StreamsTask } from './streams/task.ts'
import { WINDOW } from './streams/task.ts'

/**
 * Vector clocks of a hundred nodes, sorted ÷ by name. Ordered acknowledged durable sends of one person ÷ (window ÷ round
 * trip), and ÷ Socket.IO with `retries`. What a message of a busy room takes beside its body, on the TCP connection of a
 * reader.
 */
const PAIRS = 5
const CLOCK_PAIRS = 15
const ROOM_RUNS = 3
const CUTS = 0.02

const ours = import.meta.resolve('./streams/ours.ts')
const peer = import.meta.resolve('./streams/socket-io.ts')
const busyRoom = import.meta.resolve('./streams/busy-room.ts')
const clocks = import.meta.resolve('./streams/clocks.ts')

await runBench('streams', async (bench) => {
  const clockTask = (form: ClocksTask['form']): ClocksTask => ({ nodes: 100, form, comparisons: 100_000 })
  await bench.compare({
    name: 'clocks of 100 nodes',
    pairs: CLOCK_PAIRS,
    ours: 'SortedCounts',
    other: 'compareCounts',
    measure: byTurns(
      () => bench.side({ program: clocks, task: clockTask('sorted') }),
      () => bench.side({ program: clocks, task: clockTask('sparse') }),
    ),
    wanted: [
      { figure: 'cpuUs', label: 'CPU µs each', of: 'ours', goal: { atMost: 1 } },
      { figure: 'cpuUs', label: 'sorted ÷ by name', of: 'ratio' },
    ],
  })
  const roomTask: BusyRoomTask = { people: 100, rounds: bench.options.quick ? 40 : 200, replies: 0.3 }
  await bench.compare({
    name: 'a room of 100 people in 5 regions',
    pairs: ROOM_RUNS,
    ours: 'binary frames',
    other: null,
    measure: async () => ({ ours: await bench.side({ program: busyRoom, task: roomTask }), other: null }),
    wanted: [{ figure: 'metadataBytes', label: 'bytes per message beside its body', of: 'ours', goal: { atMost: 20 } }],
  })
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
      ],
    })
  }
})
