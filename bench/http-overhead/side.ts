import { fileURLToPath } from 'node:url'
import { drive } from '../harness/load.ts'
import { createCpuMeter } from '../harness/process-cpu.ts'
import { answer, mustEqual, readTask } from '../harness/program.ts'
import { serve } from '../harness/served.ts'
import { createCaller } from './caller.ts'
import { COUNT_PATH, type OverheadTask, REPLAYED_KEYS, type ServerTask } from './task.ts'

/** The callers, in a process of their own beside the server's. */
const task = readTask<OverheadTask>()
const program = fileURLToPath(import.meta.resolve('./server.ts'))
const { adapter, protected: isProtected, telemetry = false, work } = task
const serverTask: ServerTask = { adapter, protected: isProtected, telemetry, work }
await using server = await serve({ program, args: [JSON.stringify(serverTask)] })
const { client, ask } = createCaller(server.port)

const isReplay = task.requests === 'replay'
const before = isReplay ? REPLAYED_KEYS : 0
for (let number = 0; number < before; number++) await ask(number, false)
const { requests, figures } = await drive({
  ...task,
  serverCpuMs: createCpuMeter(server.pid),
  request: (number) => (isReplay ? ask(number % REPLAYED_KEYS, isProtected) : ask(number, false)),
})

const counted = await client.post(COUNT_PATH, {}, '')
const { effects, rows } = JSON.parse(counted.body) as { effects: number; rows: number | null }
mustEqual('effects', effects, isReplay && isProtected ? REPLAYED_KEYS : before + requests)
if (work.kind !== 'empty') mustEqual('rows', rows, effects)
client.stop()
answer(figures)
