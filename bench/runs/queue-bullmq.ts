import { drive } from '../harness/load.ts'
import { loadPeer } from '../harness/peers.ts'
import { createCpuMeter } from '../harness/process-cpu.ts'
import { answer, mustEqual, readTask } from '../harness/program.ts'
import { createEnds, JOBS_WARM_UP, type RedisJobsTask } from './queue-task.ts'

/** What this side uses of BullMQ. */
interface BullMq {
  readonly Queue: new (
    name: string,
    options: object,
  ) => {
    add(name: string, data: object, options: { readonly jobId: string }): Promise<unknown>
    close(): Promise<void>
  }
  readonly Worker: new (
    name: string,
    perform: () => Promise<number>,
    options: object,
  ) => {
    on(event: 'completed', listener: (job: { readonly id: string }) => void): void
    waitUntilReady(): Promise<unknown>
    close(): Promise<void>
  }
}

const task = readTask<RedisJobsTask>()
const { Queue, Worker } = await loadPeer<BullMq>('bullmq')
const { hostname: host, port, pathname } = new URL(task.url)
const connection = { host, port: Number(port), db: Number(pathname.slice(1)), maxRetriesPerRequest: null }
const queue = new Queue('jobs', { connection })
const ends = createEnds()
let acts = 0
const worker = new Worker('jobs', async () => ++acts, { connection, concurrency: Math.max(task.callers, 8) })
// Emitted once the end is recorded.
worker.on('completed', ({ id }) => ends.ended(id))
await worker.waitUntilReady()

async function request(number: number): Promise<void> {
  const ended = ends.of(`job-${number}`)
  await queue.add('noop', { number }, { jobId: `job-${number}` })
  await ended
}

const { requests, figures } = await drive({
  ...task,
  ...JOBS_WARM_UP,
  serverCpuMs: createCpuMeter(task.serverPid),
  request,
})
mustEqual('acts', acts, requests)
await worker.close()
await queue.close()
answer(figures)
process.exit(0)
