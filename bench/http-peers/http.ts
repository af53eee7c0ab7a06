import { fileURLToPath } from 'node:url'
import { createHttpClient } from '../harness/http-client.ts'
import { drive } from '../harness/load.ts'
import { placeOrder } from '../harness/orders.ts'
import { createCpuMeter } from '../harness/process-cpu.ts'
import { answer, mustEqual, readTask } from '../harness/program.ts'
import { serve } from '../harness/served.ts'
import { COUNT_PATH, PATH, type PeerTask } from './task.ts'

/** The callers, in a process of their own beside the server's. Every request has a key of its own. */
const REPEATED = 100

const task = readTask<PeerTask>()
const program = fileURLToPath(import.meta.resolve('./server.ts'))
await using server = await serve({ program, args: [JSON.stringify({ peer: task.peer })] })
const client = createHttpClient(server.port)

const ask = (number: number) => placeOrder(client, PATH, number)
const { requests, figures } = await drive({ ...task, serverCpuMs: createCpuMeter(server.pid), request: ask })
for (let number = 0; number < REPEATED; number++) await ask(number)
const { effects } = JSON.parse((await client.post(COUNT_PATH, {}, '')).body) as { effects: number }
mustEqual('effects', effects, requests)
client.stop()
answer(figures)
