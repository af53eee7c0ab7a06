import { EventEmitter } from 'node:events'
import { drive } from '../harness/load.ts'
import { loadPeer } from '../harness/peers.ts'
import { createPool, serverCpu } from '../harness/postgres.ts'
import { answer, mustEqual, readTask } from '../harness/program.ts'
import { createEnds, JOBS_WARM_UP, type PostgresJobsTask } from './queue-task.ts'

/** What this side uses of Graphile Worker. */
interface Graphile {
  run(options: object): Promise<{
    addJob(name: string, payload: object): Promise<unknown>
    stop(): Promise<void>
  }>
  readonly Logger: new (factory: () => () => void) => object
}

const task = readTask<PostgresJobsTask>()
const pool = createPool(task)
const { run, Logger } = await loadPeer<Graphile>('graphile-worker')
const events = new EventEmitter()
const ends = createEnds()
let acts = 0
const runner = await run({
  pgPool: pool,
  concurrency: Math.max(task.callers, 8),
  pollInterval: 500,
  noHandleSignals: true,
  logger: new Logger(() => () => {}),
  events,
  taskList: {
    noop: async () => {
      acts += 1
    },
  },
})
// Emitted once the end is recorded.
events.on('job:complete', ({ job }: { readonly job: { readonly payload: { readonly number: number } } }) =>
  ends.ended(String(job.payload.number)),
)

async function request(number: number): Promise<void> {
  const ended = ends.of(String(number))
  await runner.addJob('noop', { number })
  await ended
}

const { requests, figures } = await drive({ ...task, ...JOBS_WARM_UP, serverCpuMs: serverCpu(task), request })
mustEqual('acts', acts, requests)
await runner.stop()
await pool.end()
answer(figures)
process.exit(0)
