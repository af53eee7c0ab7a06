import { runBench } from './harness/bench.ts'
import { byTurns } from './harness/compare.ts'
import { createFolder } from './harness/folder.ts'
import { describeDisk } from './harness/machine.ts'
import type { MessagesTask } from './messages/side.ts'

/** `POST /api/messages` on the embedded store with the guard ÷ without it. */
const PAIRS = 15
const CALLERS = 64

await runBench('messages', async ({ options, note, side, compare }) => {
  note(describeDisk())
  note(`${CALLERS} keep-alive connections without keys, new texts to known people; delivery into the local mailbox`)
  const time = options.quick
    ? { warmUpMs: 0, warmUpRequests: 300, measureMs: 700 }
    : { warmUpMs: 1_000, warmUpRequests: 500, measureMs: 4_000 }
  const measure = async (guard: MessagesTask['guard']) => {
    using folder = createFolder()
    const task: MessagesTask = { ...time, callers: CALLERS, guard, folder: folder.file('data') }
    return await side({ program: import.meta.resolve('./messages/side.ts'), task })
  }
  await compare({
    name: `${CALLERS} callers`,
    pairs: PAIRS,
    ours: 'the server as it is',
    other: 'the same with ONCEONLY_GUARD=off',
    measure: byTurns(
      () => measure('on'),
      () => measure('off'),
    ),
    wanted: [
      { figure: 'requestsPerS', label: 'messages/s', of: 'ratio', goal: { atLeast: 0.9 } },
      { figure: 'p50Ms', label: 'median ms', of: 'ratio' },
      { figure: 'p99Ms', label: 'p99 ms', of: 'ratio' },
      { figure: 'serverCpuUs', label: 'server CPU µs per message', of: 'ratio' },
      { figure: 'serverCpuUs', label: 'server CPU µs per message, guarded', of: 'ours', goal: { atMost: 500 } },
    ],
  })
})
