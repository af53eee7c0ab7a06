import { fileURLToPath } from 'node:url'
import { createHttpClient } from '../harness/http-client.ts'
import { drive } from '../harness/load.ts'
import { placeOrder } from '../harness/orders.ts'
import { createCpuMeter } from '../harness/process-cpu.ts'
import { answer, mustEqual, readTask } from '../harness/program.ts'
import { serve } from '../harness/served.ts'
import type { GatewayTask } from './task.ts'
import { COUNT_PATH, PATH } from './task.ts'

/** The callers, in a process of their own beside the proxy's and the service's. */
const task = readTask<GatewayTask>()
await using service = await serve({ program: fileURLToPath(import.meta.resolve('./service.ts')) })
const upstream = `http://127.0.0.1:${service.port}`
await using proxy = await serve({
  program: fileURLToPath(import.meta.resolve('./proxy.ts')),
  args: [JSON.stringify({ ...task.proxy, upstream })],
})
const client = createHttpClient(proxy.port)

async function get(): Promise<void> {
  const { status, body } = await client.get(PATH)
  mustEqual('the status', status, 200)
  mustEqual('the orders', body, '{"orders":[]}')
}

const { requests, figures } = await drive({
  ...task,
  serverCpuMs: createCpuMeter(proxy.pid),
  request: (number) => (task.method === 'GET' ? get() : placeOrder(client, PATH, number)),
})
client.stop()
const counted = createHttpClient(service.port)
const { effects } = JSON.parse((await counted.get(COUNT_PATH)).body) as { effects: number }
counted.stop()
mustEqual('requests that reached the service', effects, requests)
answer(figures)
